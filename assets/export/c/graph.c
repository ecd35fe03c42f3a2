
/* ==== the module ==== */

/* Memory that is handed out piece by piece; without a base it is only counted. */
struct room {
    char *base;
    size_t at;
};
PLAN_FUNCTION char *take(struct room *r, size_t bytes) {
    size_t at = (r->at + 255) / 256 * 256;
    r->at = at + bytes;
    return r->base ? r->base + at : NULL;
}

//% if copies
/* `height` pieces of `width` bytes, so many bytes apart. */
PLAN_FUNCTION int copy_pieces(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width,
                              size_t height, void *stream) {
    const struct copy_2d copy = {.from_kind = DEVICE_MEMORY,
                                 .from = (uint64_t)(uintptr_t)from,
                                 .from_pitch = from_pitch,
                                 .to_kind = DEVICE_MEMORY,
                                 .to = (uint64_t)(uintptr_t)to,
                                 .to_pitch = to_pitch,
                                 .width = width,
                                 .height = height};
    if (height == 1)
        return cuMemcpyDtoDAsync_v2(copy.to, copy.from, width, stream);
    return cuMemcpy2DAsync_v2(&copy, stream);
}
/* One slice of a tensor, as it would be alone: `outer` pieces of `inner` bytes, `extent` pieces apart.
 * It is copied only where it does not lie so already, or not aligned. */
PLAN_FUNCTION int get_slice(const void **slice, const char *from, char *stage, size_t outer, size_t extent,
                            size_t inner, size_t index, void *stream) {
    from += index * inner;
    *slice = from;
    if (outer == 1 && index * inner % 256 == 0)
        return 0;
    *slice = stage;
    return copy_pieces(stage, inner, from, extent * inner, inner, outer, stream);
}
PLAN_FUNCTION int put_slice(char *to, const char *slice, size_t outer, size_t extent, size_t inner,
                            size_t index, void *stream) {
    return copy_pieces(to + index * inner, extent * inner, slice, inner, inner, outer, stream);
}
PLAN_FUNCTION int put_zeros(char *to, size_t bytes, void *stream) {
    return cuMemsetD8Async((uint64_t)(uintptr_t)to, 0, bytes, stream);
}
PLAN_FUNCTION int put_whole(char *to, const void *from, size_t bytes, void *stream) {
    return cuMemcpyDtoDAsync_v2((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, stream);
}

//% end
/* What is done with a use of a task: its memory is counted, and whether its sizes are admitted; its
 * parameters are prepared; it is run. */
enum work { COUNT, PREPARE, RUN };
/* Where everything lies that flows between uses. */
struct flows {
    char *at[${nflows}];
};
//% each uses

/* ${module}: the task ${part}${often} */
static int use_${use}(const ${name}_op *op, const ${name}_dims *dims, const struct flows *flows, struct room *room,
                 struct room *kept, enum work work, void *stream) {
    int bad = 0, code = 0;
    ${sizes}
    const ${op}_dims own = {${own}};
    ${op}_tensors tensors = {0};
//% each stages
    char *${stage} = take(room, (size_t)(${bytes}));
//% end
    size_t bytes = ${op}_workspace_bytes(&op->part_${part}, &own);
    char *workspace = take(room, bytes);
//% if prepares
    size_t kept_bytes = ${op}_prepared_bytes(&op->part_${part}, &own);
    char *prepared = take(kept, kept_bytes);
//% else
    (void)kept;
//% end
    if (bad || !${op}_admits(&op->part_${part}, &own))
        return INVALID_VALUE;
    if (work == COUNT)
        return 0;
//% each whole
    tensors.${tensor} = flows->at[${flow}];
//% end
    if (work == PREPARE)
//% if prepares
        return ${op}_prepare(&op->part_${part}, &own, &tensors, prepared, kept_bytes, stream);
//% else
        return 0;
//% end
//% each before
    code = code ? code : ${call};
//% end
//% if repeats
    const int64_t steps = ${steps};
//% each states
    const void *state_${tensor} = ${first};
//% end
    for (int64_t step = 0; step < steps && !code; step++) {
//% if each_any
        const size_t at = (size_t)(${at});
//% end
//% each states
        tensors.${tensor} = state_${tensor};
//% end
//% each pairs
        tensors.${tensor} = step % 2 ? ${tensor}_b : ${tensor}_a;
//% end
//% each gets
        code = code ? code : ${call};
//% end
//% if prepares
        code = code ? code : ${op}_run(&op->part_${part}, &own, &tensors, prepared, workspace, bytes, stream);
//% else
        code = code ? code : ${op}_run(&op->part_${part}, &own, &tensors, workspace, bytes, stream);
//% end
//% each puts
        code = code ? code : ${call};
//% end
//% each states
        state_${tensor} = tensors.${next};
//% end
    }
//% each lasts
    code = code ? code : ${call};
//% end
    return code;
//% else
//% if prepares
    return code ? code : ${op}_run(&op->part_${part}, &own, &tensors, prepared, workspace, bytes, stream);
//% else
    return code ? code : ${op}_run(&op->part_${part}, &own, &tensors, workspace, bytes, stream);
//% end
//% end
}
//% end

typedef int use_of(const ${name}_op *op, const ${name}_dims *dims, const struct flows *flows, struct room *room,
                   struct room *kept, enum work work, void *stream);
static use_of *const uses[] = {
//% each uses
    use_${use},
//% end
};
enum { USES = sizeof uses / sizeof *uses };

/* What the module is given and what it gives lies where the caller says (`tensors`; NULL: it is not
 * looked at); what flows between takes room, the same again once nobody reads it any more. */
static int place_flows(const ${name}_dims *dims, const ${name}_tensors *tensors, struct room *room,
                       struct flows *flows) {
    int bad = 0;
    ${sizes}
    memset(flows, 0, sizeof *flows);
//% if slots
    size_t size[${nslots}] = {0}, one;
//% each sized
    one = (size_t)(${bytes}); /* ${what} */
    size[${slot}] = one > size[${slot}] ? one : size[${slot}];
//% end
//% each slots
    char *slot_${slot} = take(room, size[${slot}]);
//% end
//% each sized
    flows->at[${flow}] = slot_${slot};
//% end
//% else
    (void)room;
//% end
    if (bad)
        return INVALID_VALUE;
    if (!tensors)
        return 0;
//% each given
    flows->at[${flow}] = (char *)(uintptr_t)tensors->${tensor};
    if (!tensors->${tensor})
        return INVALID_VALUE;
//% end
    return 0;
}

/* The room that a run needs; `kept`, that of prepared parameters. 0: sizes that are not admitted. */
static int count_room(const ${name}_op *op, const ${name}_dims *dims, size_t *most, struct room *kept) {
    struct flows flows;
    struct room room = {0};
    int code = place_flows(dims, NULL, &room, &flows);
    *most = room.at;
    for (int i = 0; i < USES && !code; i++) {
        struct room own = room;
        code = uses[i](op, dims, &flows, &own, kept, COUNT, NULL);
        *most = own.at > *most ? own.at : *most;
    }
    return !code;
}

int ${name}_load(${name}_op *op) {
    int code = 0;
    memset(op, 0, sizeof *op);
//% each parts
    code = code ? code : ${op}_load(&op->part_${part});
//% end
    if (code)
        ${name}_unload(op);
    return code;
}

void ${name}_unload(${name}_op *op) {
//% each parts
    ${op}_unload(&op->part_${part});
//% end
}

int ${name}_admits(const ${name}_op *op, const ${name}_dims *dims) {
    size_t most = 0;
    struct room kept = {0};
    return count_room(op, dims, &most, &kept);
}

size_t ${name}_workspace_bytes(const ${name}_op *op, const ${name}_dims *dims) {
    size_t most = 0;
    struct room kept = {0};
    return count_room(op, dims, &most, &kept) ? most : 0;
}

/* Whether memory is as large as it must be, and where it may be. */
static int is_enough(const void *memory, size_t bytes, size_t needed) {
    return !needed || (memory && (uintptr_t)memory % 256 == 0 && bytes >= needed);
}

//% if prepares
size_t ${name}_prepared_bytes(const ${name}_op *op, const ${name}_dims *dims) {
    size_t most = 0;
    struct room kept = {0};
    return count_room(op, dims, &most, &kept) ? kept.at : 0;
}

int ${name}_prepare(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
        void *prepared, size_t prepared_bytes, void *stream) {
    struct room counted = {0}, room = {0}, kept = {.base = prepared};
    struct flows flows;
    size_t most = 0;
    if (!count_room(op, dims, &most, &counted) || !is_enough(prepared, prepared_bytes, counted.at))
        return INVALID_VALUE;
    memset(&flows, 0, sizeof flows);
//% each parameters
    flows.at[${flow}] = (char *)(uintptr_t)tensors->${tensor};
//% end
    int code = 0;
    for (int i = 0; i < USES && !code; i++)
        code = uses[i](op, dims, &flows, &room, &kept, PREPARE, stream);
    return code;
}

//% end
int ${name}_forward(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
        const void *prepared, void *workspace, size_t workspace_bytes, void *stream) {
//% else
        void *workspace, size_t workspace_bytes, void *stream) {
//% end
    struct room counted = {0}, room = {.base = workspace};
    struct flows flows;
    size_t most = 0;
    if (!count_room(op, dims, &most, &counted) || !is_enough(workspace, workspace_bytes, most))
        return INVALID_VALUE;
//% if prepares
    struct room kept = {.base = (char *)(uintptr_t)prepared};
    if (!is_enough(prepared, counted.at, counted.at))
        return INVALID_VALUE;
//% else
    struct room kept = {0};
//% end
    int code = place_flows(dims, tensors, &room, &flows);
    for (int i = 0; i < USES && !code; i++) {
        struct room own = room;
        code = uses[i](op, dims, &flows, &own, &kept, RUN, stream);
    }
//% if repeated
    {
        int bad = 0;
        ${sizes}
//% each repeated
        code = code ? code : put_whole(tensors->${tensor}, flows.at[${flow}], (size_t)(${bytes}), stream);
//% end
    }
//% end
    return code;
}
