#include "search/event.h"

const char *event_name(enum event_kind k) {
    static const char *const names[EVENT_COUNT] = {
#define EVENT(id, name) name,
#include "search/event.def"
#undef EVENT
    };
    return k < EVENT_COUNT ? names[k] : "unknown";
}
