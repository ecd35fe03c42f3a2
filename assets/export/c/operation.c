//% each kernels

/* ---- kernel ${number}: ${about} ---- */

static int ${prefix}admits_${number}(const ${name}_dims *dims) {
    int bad = 0;
    ${sizes}
//% each checks
    if (!(${holds}) || bad)
        return 0; /* ${text} */
//% end
    return !bad;
}

static size_t ${prefix}workspace_${number}(const ${name}_dims *dims) {
    size_t at = 0;
    int bad = 0;
    ${sizes}
//% each workspaces
    at = (at + ${align} - 1) / ${align} * ${align} + (size_t)(${bytes});
//% end
    return bad ? SIZE_MAX : at;
}
//% if prepares

static size_t ${prefix}prepared_${number}(const ${name}_dims *dims) {
    size_t at = 0;
    int bad = 0;
    ${sizes}
//% each prepared
    at = (at + ${align} - 1) / ${align} * ${align} + (size_t)(${bytes});
//% end
    return bad ? SIZE_MAX : at;
}

static int ${prefix}prepare_${number}(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
                     void *prepared, void *stream) {
    int bad = 0, code = 0;
    ${sizes}
//% if prepared
    size_t at = 0;
//% end
//% each parameters
    uint64_t tensor_${tensor} = (uint64_t)(uintptr_t)tensors->${tensor};
//% end
//% each prepared
    at = (at + ${align} - 1) / ${align} * ${align};
    uint64_t work_${workspace} = (uint64_t)(uintptr_t)prepared + at;
    at += (size_t)(${bytes});
//% end
//% each parameters
    bad |= !tensor_${tensor} || tensor_${tensor} % ${align};
//% end
    (void)op, (void)tensors, (void)prepared, (void)stream;
    if (bad)
        return INVALID_VALUE;
//% each once_maps
    struct tensor_map map_${map};
    {
        const uint64_t extents[] = {${extents}}, strides[] = {${strides}};
        const uint32_t box[] = {${box}}, steps[] = {${steps}};
        code = cuTensorMapEncodeTiled(&map_${map}, ${type}, ${rank}, (void *)(uintptr_t)${of}, extents, strides,
                                      box, steps, 0, ${swizzle}, 2, ${fill});
        if (code)
            return code;
    }
//% end
//% each once
//% if memset
    code = fill(${of}, UINT64_C(${pattern}), ${size}, (uint64_t)(${count}), stream);
    if (code)
        return code;
//% else
    {
        struct launch_config config = {.grid = {${grid}},
                                       .block = {${block}},
                                       .shared = ${shared},
                                       .stream = stream};
        const unsigned cluster[3] = {${cluster}};
//% each integers
        int64_t argument_${at} = ${value};
//% end
        void *params[] = {${params}};
        code = launch(op->function[${function}], &config, cluster, ${cooperative}, params);
        if (code)
            return code;
    }
//% end
//% end
    return code;
}
//% end

static int ${prefix}run_${number}(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
                 const void *prepared, void *workspace, void *stream) {
//% else
                 void *workspace, void *stream) {
//% end
    int bad = 0, code = 0;
    ${sizes}
//% if prepared
    size_t kept = 0;
//% end
//% if workspaces
    size_t at = 0;
//% end
//% each addresses
    uint64_t tensor_${tensor} = (uint64_t)(uintptr_t)tensors->${tensor};
//% end
//% each workspaces
    at = (at + ${align} - 1) / ${align} * ${align};
    uint64_t work_${workspace} = (uint64_t)(uintptr_t)workspace + at;
    at += (size_t)(${bytes});
//% end
//% each prepared
    kept = (kept + ${align} - 1) / ${align} * ${align};
    uint64_t work_${workspace} = (uint64_t)(uintptr_t)prepared + kept;
    kept += (size_t)(${bytes});
    (void)work_${workspace};
//% end
//% each addresses
    bad |= !tensor_${tensor} || tensor_${tensor} % ${align};
//% end
    (void)op, (void)workspace;
//% if prepares
    (void)prepared;
//% end
    if (bad)
        return INVALID_VALUE;
//% each maps
    struct tensor_map map_${map};
    {
        const uint64_t extents[] = {${extents}}, strides[] = {${strides}};
        const uint32_t box[] = {${box}}, steps[] = {${steps}};
        code = cuTensorMapEncodeTiled(&map_${map}, ${type}, ${rank}, (void *)(uintptr_t)${of}, extents, strides,
                                      box, steps, 0, ${swizzle}, 2, ${fill});
        if (code)
            return code;
    }
//% end
//% each steps
//% if memset
    code = fill(${of}, UINT64_C(${pattern}), ${size}, (uint64_t)(${count}), stream);
    if (code)
        return code;
//% else
    {
        struct launch_config config = {.grid = {${grid}},
                                       .block = {${block}},
                                       .shared = ${shared},
                                       .stream = stream};
        const unsigned cluster[3] = {${cluster}};
//% each integers
        int64_t argument_${at} = ${value};
//% end
        void *params[] = {${params}};
        code = launch(op->function[${function}], &config, cluster, ${cooperative}, params);
        if (code)
            return code;
    }
//% end
//% end
    return code;
}

/* The cubin for ${arch}; SHA-256 of its source: ${source_hash}. */
_Alignas(16) static const unsigned char ${prefix}cubin_${number}[] = {
${bytes_of_cubin}};
//% end

/* ---- the library ---- */

struct ${prefix}kernel {
    int major, minor, exact; /* compute capability; exact: of this one alone, not of later ones */
    const unsigned char *cubin;
    int first, functions; /* in ${name}_op.function */
    ${name}_dims own;     /* the sizes that it was made for */
    int (*admits)(const ${name}_dims *dims);
    size_t (*workspace)(const ${name}_dims *dims);
    int (*run)(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
               const void *prepared, void *workspace, void *stream);
    size_t (*prepared)(const ${name}_dims *dims);
    int (*prepare)(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
                   void *prepared, void *stream);
//% else
               void *workspace, void *stream);
//% end
};
static const struct ${prefix}kernel ${prefix}kernels[] = {
//% each kernels
    {${major}, ${minor}, ${exact}, ${prefix}cubin_${number}, ${first}, ${functions}, {${own}}, ${prefix}admits_${number}, ${prefix}workspace_${number}, ${prefix}run_${number},
//% if prepares
     ${prefix}prepared_${number}, ${prefix}prepare_${number},
//% end
    },
//% end
};
static const char *const ${prefix}function_names[] = {
//% each functions
    "${function}",
//% end
};
enum { ${prefix}KERNELS = sizeof ${prefix}kernels / sizeof *${prefix}kernels };

static int ${prefix}load_kernel(${name}_op *op, int k, int device) {
    int code = cuModuleLoadData(&op->module[k], ${prefix}kernels[k].cubin);
    for (int i = ${prefix}kernels[k].first; !code && i < ${prefix}kernels[k].first + ${prefix}kernels[k].functions; i++) {
        code = cuModuleGetFunction(&op->function[i], op->module[k], ${prefix}function_names[i]);
        if (!code)
            code = allow_shared(op->function[i], device);
    }
    return code;
}

${linkage}void ${name}_unload(${name}_op *op) {
    for (int k = 0; k < ${prefix}KERNELS; k++)
        if (op->module[k])
            cuModuleUnload(op->module[k]);
    memset(op, 0, sizeof *op);
}

${linkage}int ${name}_load(${name}_op *op) {
    int device = 0, major = 0, minor = 0, loaded = 0;
    memset(op, 0, sizeof *op);
    int code = cuCtxGetDevice(&device);
    if (!code)
        code = cuDeviceGetAttribute(&major, CC_MAJOR, device);
    if (!code)
        code = cuDeviceGetAttribute(&minor, CC_MINOR, device);
    for (int k = 0; !code && k < ${prefix}KERNELS; k++) {
        const struct ${prefix}kernel *kernel = &${prefix}kernels[k];
        if (major != kernel->major || minor < kernel->minor || (kernel->exact && minor != kernel->minor))
            continue;
        code = ${prefix}load_kernel(op, k, device);
        loaded++;
    }
    if (code)
        ${name}_unload(op);
    return code ? code : loaded ? 0 : NO_BINARY_FOR_GPU;
}

/* The kernel that was made for these sizes, or else the first that admits them. */
static const struct ${prefix}kernel *${prefix}choose(const ${name}_op *op, const ${name}_dims *dims) {
    for (int own = 1; own >= 0; own--)
        for (int k = 0; k < ${prefix}KERNELS; k++)
            if (op->module[k] && (!own || memcmp(&${prefix}kernels[k].own, dims, sizeof *dims) == 0) &&
//% if types
                ${prefix}kernels[k].own.types == dims->types &&
//% end
                ${prefix}kernels[k].admits(dims))
                return &${prefix}kernels[k];
    return NULL;
}

${linkage}int ${name}_admits(const ${name}_op *op, const ${name}_dims *dims) {
    return ${prefix}choose(op, dims) != NULL;
}

${linkage}size_t ${name}_workspace_bytes(const ${name}_op *op, const ${name}_dims *dims) {
    const struct ${prefix}kernel *kernel = ${prefix}choose(op, dims);
    return kernel ? kernel->workspace(dims) : 0;
}

//% if prepares
static int ${prefix}is_kept(const void *prepared, size_t needed) {
    return !needed || (prepared && (uintptr_t)prepared % 256 == 0);
}

${linkage}size_t ${name}_prepared_bytes(const ${name}_op *op, const ${name}_dims *dims) {
    const struct ${prefix}kernel *kernel = ${prefix}choose(op, dims);
    return kernel ? kernel->prepared(dims) : 0;
}

${linkage}int ${name}_prepare(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
        void *prepared, size_t prepared_bytes, void *stream) {
    const struct ${prefix}kernel *kernel = ${prefix}choose(op, dims);
    size_t needed = kernel ? kernel->prepared(dims) : 0;
    if (!kernel || needed > prepared_bytes || !${prefix}is_kept(prepared, needed))
        return INVALID_VALUE;
    return kernel->prepare(op, dims, tensors, prepared, stream);
}

//% end
${linkage}int ${name}_run(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
        const void *prepared, void *workspace, size_t workspace_bytes, void *stream) {
//% else
        void *workspace, size_t workspace_bytes, void *stream) {
//% end
    const struct ${prefix}kernel *kernel = ${prefix}choose(op, dims);
    if (!kernel)
        return INVALID_VALUE;
    size_t needed = kernel->workspace(dims);
    if (needed > workspace_bytes || (needed && (!workspace || (uintptr_t)workspace % 256)))
        return INVALID_VALUE;
//% if prepares
    if (!${prefix}is_kept(prepared, kernel->prepared(dims)))
        return INVALID_VALUE;
    return kernel->run(op, dims, tensors, prepared, workspace, stream);
//% else
    return kernel->run(op, dims, tensors, workspace, stream);
//% end
}
