/* JSON, narrowly: json-c stays behind this header. A tree is owned by its root; `json_free` frees
 * it all. Values handed to json_set and json_push are moved. Getters never fail loudly: they return
 * false (or NULL) when the key is absent or has another type. Numbers are int64 or double; a
 * non-finite double is written as null. Output is compact, keys in insertion order, doubles with
 * the fewest digits that read back the same. Parsing is strict and limited to 64 levels. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/err.h"

typedef struct json json;

json *json_parse(str text, struct err *err); /* NULL and err */
void json_free(json *j);
json *json_copy(const json *j);
void json_write_text(str s, struct buf *out);   /* a string, in quotes */
void json_write_f64(double v, struct buf *out); /* null where it is not finite */
void json_write(const json *j, struct buf *out);
void json_write_pretty(const json *j, struct buf *out);

const json *json_get(const json *obj, const char *key);
const json *json_at(const json *arr, size_t i);
size_t json_len(const json *j); /* of an array or object; 0 otherwise */
bool json_is_object(const json *j);
bool json_is_array(const json *j);
bool json_to_str(const json *j, str *out); /* borrowed from the tree */
bool json_to_i64(const json *j, int64_t *out);
bool json_to_f64(const json *j, double *out); /* integers too */
bool json_to_bool(const json *j, bool *out);
bool json_get_str(const json *obj, const char *key, str *out);
bool json_get_i64(const json *obj, const char *key, int64_t *out);
bool json_get_f64(const json *obj, const char *key, double *out);
bool json_get_bool(const json *obj, const char *key, bool *out);
/* Calls f for each member in order. */
void json_each(const json *obj, void (*f)(void *ctx, const char *key, const json *value),
               void *ctx);

json *json_object(void);
json *json_array(void);
json *json_string(str s); /* bytes that are not UTF-8 become U+FFFD */
json *json_of_i64(int64_t v);
json *json_of_f64(double v);
json *json_of_bool(bool v);
void json_set(json *obj, const char *key, json *value);
void json_set_str(json *obj, const char *key, str v);
void json_set_i64(json *obj, const char *key, int64_t v);
void json_set_f64(json *obj, const char *key, double v);
void json_set_bool(json *obj, const char *key, bool v);
void json_push(json *arr, json *value);
void json_push_str(json *arr, str v);
void json_push_i64(json *arr, int64_t v);
void json_push_f64(json *arr, double v);

#endif
