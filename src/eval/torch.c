/* The coordinator's side of the PyTorch helper: what it is given and asked (python.h is the
 * process). */
#include "eval/torch.h"

#include "base/file.h"
#include "eval/python.h"
#include "spec/data.h"

#include <string.h>

enum {
    SETS = 3,        /* of inputs, in rotation */
    PIECE = 1 << 20, /* elements of a tensor that are made; the helper repeats them */
    REQUEST_MAX_BYTES = 16 << 20,
    OPEN_MS = 180000, /* importing PyTorch from a cold disk, CUDA's start */
    WARM_MS = 600000, /* compilation */
    TIME_MS = 300000,
};

struct torch_helper {
    struct arena *arena;
    const char *dir; /* where inputs are written */
    struct python *python;
    json *facts;
};

const char *torch_mode_name(enum torch_mode m) {
    return m == TORCH_EAGER ? "eager" : "compiled";
}

const char *torch_numerics_name(enum torch_numerics n) {
    return n == TORCH_CLASS ? "class" : "default";
}

/* ---- the folder ---- */

static bool write_piece(struct torch_helper *t, const struct inst *in, size_t tensor, size_t set,
                        uint64_t seed, json *files, struct err *err) {
    const struct tensor *x = &in->task->tensors[tensor];
    int64_t count = in->tensors[tensor].count < PIECE ? in->tensors[tensor].count : PIECE;
    size_t bytes = (size_t)count * dtype_info(x->dtype)->bytes;
    str name = arena_printf(t->arena, "input-%zu-%zu", tensor, set);
    void *data = mem_alloc(bytes + 1);
    data_fill(in, NULL, tensor, DATA_STATED, seed + set, 0, count, data);
    json_push_str(files, name);
    bool ok = file_replace(arena_printf(t->arena, "%s/%.*s", t->dir, STR_ARG(name)).p,
                           (str){data, bytes}, err);
    mem_free(data);
    return ok;
}

static json *shape_json(const struct inst *in, size_t tensor) {
    json *shape = json_array();
    for (size_t i = 0; i < in->task->tensors[tensor].rank; i++)
        json_push_i64(shape, in->tensors[tensor].extent[i]);
    return shape;
}

static bool add_tensor(struct torch_helper *t, const struct torch_options *o, size_t i,
                       json *inputs, json *outputs, struct err *err) {
    const struct tensor *x = &o->inst->task->tensors[i];
    bool ok = true;
    if (tensor_is_input(x)) {
        json *j = json_object(), *files = json_array();
        json_set_str(j, "name", x->name);
        json_set_str(j, "dtype", str_view(dtype_info(x->dtype)->name));
        json_set(j, "shape", shape_json(o->inst, i));
        for (size_t k = 0; k < SETS && ok; k++)
            ok = write_piece(t, o->inst, i, k, o->seed, files, err);
        json_set(j, "files", files);
        json_push(inputs, j);
    }
    if (tensor_is_output(x)) {
        json *j = json_object();
        json_set_str(j, "name", x->name);
        json_set(j, "shape", shape_json(o->inst, i));
        json_push(outputs, j);
    }
    return ok;
}

/* The first request; writes the inputs on the way. NULL and err. */
static json *first_request(struct torch_helper *t, const struct torch_options *o, struct err *err) {
    const struct task *task = o->inst->task;
    json *j = json_object(), *dims = json_object(), *inputs = json_array(), *outputs = json_array();
    bool ok = true;
    json_set_str(j, "torch", task->torch);
    json_set_str(j, "class", str_view(accuracy_name(task->accuracy)));
    json_set_str(j, "device", str_view(o->device));
    for (size_t i = 0; i < task->ndims; i++)
        json_set_i64(dims, arena_cstr(t->arena, task->dims[i].name), o->inst->dims[i]);
    for (size_t i = 0; i < task->ntensors && ok; i++)
        ok = add_tensor(t, o, i, inputs, outputs, err);
    json_set(j, "dims", dims);
    json_set(j, "inputs", inputs);
    json_set(j, "outputs", outputs);
    if (ok)
        return j;
    json_free(j);
    return NULL;
}

static bool write_request(struct torch_helper *t, const json *request, struct err *err) {
    struct buf text;
    buf_init(&text, REQUEST_MAX_BYTES);
    json_write(request, &text);
    bool ok = !text.failed || err_set(err, ERR_INPUT, "the request is too long");
    ok = ok &&
         file_replace(arena_printf(t->arena, "%s/request.json", t->dir).p, buf_str(&text), err);
    buf_release(&text);
    return ok;
}

static bool no_line(const struct torch_options *o, struct err *err) {
    if (!o->inst->task->torch.n)
        err_set(err, ERR_INPUT, "the task has no torch line");
    return !o->inst->task->torch.n;
}

bool torch_write(const struct torch_options *o, const char *dir, struct err *err) {
    if (no_line(o, err))
        return false;
    struct torch_helper t = {.arena = arena_new(64u << 20)};
    t.dir = dir;
    json *request = python_write_script(o->assets, "torch/helper.py", dir, err)
                        ? first_request(&t, o, err)
                        : NULL;
    bool ok = request && write_request(&t, request, err);
    json_free(request);
    arena_free(t.arena);
    return ok;
}

/* ---- requests ---- */

static bool introduce(struct torch_helper *t, const struct torch_options *o, struct err *err) {
    json *hello = NULL;
    bool ok = python_start(t->python, OPEN_MS, &hello, err);
    json *request = ok ? first_request(t, o, err) : NULL;
    t->facts = request ? python_ask(t->python, request, OPEN_MS, err) : NULL;
    if (t->facts && json_get(hello, "sandbox"))
        json_set(t->facts, "sandbox", json_copy(json_get(hello, "sandbox")));
    json_free(hello);
    json_free(request);
    return t->facts != NULL;
}

/* The process, which has not said anything yet. */
static struct torch_helper *begin(const struct torch_options *o, struct err *err) {
    struct python_options how = {.what = "the PyTorch helper",
                                 .role = "torch",
                                 .script = "torch/helper.py",
                                 .python = o->python,
                                 .assets = o->assets,
                                 .program = o->program,
                                 .limit_ms = o->limit_ms};
    struct torch_helper *t = mem_alloc(sizeof *t);
    t->arena = arena_new(64u << 20);
    t->python = python_open(&how, err);
    if (t->python) {
        t->dir = python_dir(t->python);
        return t;
    }
    torch_close(t);
    return NULL;
}

struct torch_helper *torch_open(const struct torch_options *o, struct err *err) {
    struct torch_helper *t = no_line(o, err) ? NULL : begin(o, err);
    if (!t || introduce(t, o, err))
        return t;
    torch_close(t);
    return NULL;
}

struct torch_helper *torch_open_values(const struct torch_options *o, struct err *err) {
    struct torch_helper *t = begin(o, err);
    if (!t || python_start(t->python, OPEN_MS, NULL, err))
        return t;
    torch_close(t);
    return NULL;
}

void torch_close(struct torch_helper *t) {
    if (!t)
        return;
    python_close(t->python);
    json_free(t->facts);
    arena_free(t->arena);
    mem_free(t);
}

const json *torch_facts(const struct torch_helper *t) {
    return t->facts;
}

static json *request_for(const char *what, enum torch_mode m, enum torch_numerics n) {
    json *j = json_object();
    json_set_str(j, what, str_view(torch_mode_name(m)));
    json_set_str(j, "numerics", str_view(torch_numerics_name(n)));
    return j;
}

bool torch_warm(struct torch_helper *t, enum torch_mode m, enum torch_numerics n, struct err *err) {
    json *request = request_for("warm", m, n);
    json *answer = python_ask(t->python, request, WARM_MS, err);
    bool ok = answer != NULL;
    json_free(request);
    json_free(answer);
    return ok || err_wrap(err, "%s", torch_mode_name(m));
}

static bool read_samples(const json *list, size_t count, double *samples) {
    for (size_t i = 0; i < count; i++)
        if (!json_to_f64(json_at(list, i), &samples[i]) || !(samples[i] > 0))
            return false;
    return json_len(list) == count;
}

bool torch_time(struct torch_helper *t, enum torch_mode m, enum torch_numerics n, size_t count,
                double *samples, struct err *err) {
    json *request = request_for("time", m, n);
    json_set_i64(request, "samples", (int64_t)count);
    json *answer = python_ask(t->python, request, TIME_MS, err);
    bool ok = answer != NULL;
    if (ok && !read_samples(json_get(answer, "samples_s"), count, samples))
        ok = err_set(err, ERR_ENV, "the PyTorch helper's samples are not %zu times", count);
    json_free(request);
    json_free(answer);
    return ok || err_wrap(err, "%s", torch_mode_name(m));
}

/* ---- values ---- */

static bool write_values(const struct torch_helper *t, const struct inst *in,
                         const void *const *inputs, struct arena *a, json *request,
                         struct err *err) {
    json *given = json_array(), *wanted = json_array(), *dims = json_object();
    bool ok = true;
    json_set_str(request, "values", in->task->torch);
    json_set(request, "dims", dims);
    json_set(request, "inputs", given);
    json_set(request, "outputs", wanted);
    for (size_t i = 0; i < in->task->ndims; i++)
        json_set_i64(dims, arena_cstr(a, in->task->dims[i].name), in->dims[i]);
    for (size_t i = 0; i < in->task->ntensors && ok; i++) {
        const struct tensor *x = &in->task->tensors[i];
        for (int written = 0; written < 2 && ok; written++) {
            if (!(written ? tensor_is_output(x) : tensor_is_input(x)))
                continue;
            json *j = json_object();
            str file = arena_printf(a, "%s-%zu", written ? "value" : "given", i);
            json_set_str(j, "name", x->name);
            json_set_str(j, "dtype", str_view(dtype_info(x->dtype)->name));
            json_set(j, "shape", shape_json(in, i));
            json_set_str(j, "file", file);
            json_push(written ? wanted : given, j);
            if (!written)
                ok = file_replace(arena_printf(a, "%s/%.*s", t->dir, STR_ARG(file)).p,
                                  (str){inputs[i], in->tensors[i].bytes}, err);
        }
    }
    return ok;
}

static bool read_values(const struct torch_helper *t, const struct inst *in, double *const *values,
                        struct arena *a, struct err *err) {
    size_t n = 0;
    for (size_t i = 0; i < in->task->ntensors; i++) {
        size_t bytes = (size_t)in->tensors[i].count * sizeof(double);
        str content;
        if (!tensor_is_output(&in->task->tensors[i]))
            continue;
        if (!python_take(t->python, arena_printf(a, "value-%zu", i), bytes, a, &content, err))
            return err_wrap(err, "the PyTorch helper's values");
        if (content.n != bytes)
            return err_set(err, ERR_ENV, "the PyTorch helper's values are not %zu bytes", bytes);
        memcpy(values[n++], content.p, bytes);
    }
    return true;
}

/* What a task's line came to, in the error's kind. */
static bool judge_answer(const json *answer, bool *lacks, struct err *err) {
    str text;
    *lacks = json_get_str(answer, "lacks", &text);
    if (*lacks)
        return err_set(err, ERR_ENV, "%.*s", STR_ARG(text));
    return !json_get_str(answer, "fault", &text) || err_set(err, ERR_NO, "%.*s", STR_ARG(text));
}

bool torch_values(struct torch_helper *t, const struct inst *in, const void *const *inputs,
                  double *const *values, bool *lacks, struct err *err) {
    struct arena *a = arena_new(1u << 30);
    json *request = json_object(), *answer = NULL;
    *lacks = false;
    bool ok = write_values(t, in, inputs, a, request, err);
    if (ok)
        answer = python_ask(t->python, request, WARM_MS, err);
    ok = answer && judge_answer(answer, lacks, err) && read_values(t, in, values, a, err);
    if (ok && !t->facts) {
        t->facts = answer;
        answer = NULL;
    }
    json_free(request);
    json_free(answer);
    arena_free(a);
    return ok;
}
