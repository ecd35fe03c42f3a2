/* Every message: what is read is written, and read again. The first byte chooses which it is. */
#include "device/wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fields *const messages[] = {
    &job_fields,         &result_fields,       &wire_prepare_fields, &wire_cases_fields,
    &wire_judged_fields, &wire_buffers_fields, &wire_load_fields,    &wire_answer_fields,
    &wire_run_fields,    &job_measure_fields,  &job_sample_fields,   &wire_parts_fields,
    &wire_task_fields,   &bound_plan_fields,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = {0};
    if (!size)
        return 0;
    const struct fields *of = messages[data[0] % (sizeof messages / sizeof *messages)];
    json *j = json_parse((str){(const char *)data + 1, size - 1}, &e);
    if (!j)
        return 0;
    struct arena *a = arena_new(1u << 30);
    void *message = arena_alloc(a, of->size, _Alignof(max_align_t));
    bool ok = wire_read(of, j, a, message, &e);
    json_free(j);
    if (!ok && e.kind != ERR_ENV)
        abort();
    if (ok && of == &bound_plan_fields)
        plan_check(message, &e);
    if (ok) {
        void *again = arena_alloc(a, of->size, _Alignof(max_align_t));
        j = fields_to_json(of, message);
        if (!wire_read(of, j, a, again, &e))
            abort();
        json_free(j);
    }
    arena_free(a);
    return 0;
}
