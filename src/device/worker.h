/* Private to the worker: what its parts share. worker.c starts, watches and replaces device and
 * judge and speaks with the coordinator; worker_job.c walks a job through them; worker_modules.c
 * knows which of its modules the device has; worker_time.c says in which order its runs are made
 * and when enough of them were timed; worker_meet.c which contents a round has, and what it costs
 * to meet one for the first time. */
#ifndef DEVICE_WORKER_H
#define DEVICE_WORKER_H

#include "device/meetings.h"
#include "device/role.h"
#include "device/wire.h"

enum step {
    STEP_IDLE,
    STEP_WAIT_ROLES, /* a role is starting; job_next follows its hello */
    STEP_LOAD,
    STEP_PREPARE,
    STEP_RUN,
    STEP_COMPARE,
    STEP_DUMP,
    STEP_MEASURE,
    STEP_SAMPLE,
    STEP_PARTS,
    STEP_CEILINGS,
    STEP_COUNT
};

struct worker;

struct role {
    struct worker *w;
    const char *name;
    pid_t pid;
    struct conn *conn;
    bool ready;     /* said hello */
    uint64_t slow;  /* timer: gives it up when there was no hello */
    unsigned fails; /* starts in a row that ended before a hello */
    json *sandbox;  /* from its hello */
    json *facts;    /* … what the device is, where it is a GPU */
};

/* What was timed of one module. */
struct timed {
    double *s, *host_s;
    size_t n, room;
};

/* The contents of the batch under way. */
struct meet {
    bool drawn, holds;                              /* some are held back in the first round */
    bool held[WIRE_MAX_CASES], met[WIRE_MAX_CASES]; /* by case of the batch */
    size_t kind[WIRE_MAX_CASES];
    size_t sent[WIRE_MAX_CASES], nsent; /* the cases of the round, by place */
    unsigned further;                   /* rounds with new contents that were asked for */
    size_t from;                        /* where replacing begins */
    struct meeting *list;
    size_t n, room;
};

/* The job in hand and how far it is. */
struct job_walk {
    struct frame frame; /* type 0: none */
    struct arena *mem;  /* as long as the job */
    struct job asked;
    size_t batch, round, nmodules;
    size_t live[WIRE_MAX_MODULES], nlive; /* modules that have not failed; [0]: the candidate */
    bool apart;                           /* the device has one of them a time */
    bool loaded, prepared, timed_out;
    unsigned tries[WIRE_MAX_MODULES]; /* of the batch, by module; [0]: of all while together */
    unsigned judges;
    struct wire_order order[WIRE_MAX_CASES]; /* runs of the batch under way, in order */
    size_t norder;
    struct result found; /* what is known so far, in mem */
    struct job_held {    /* the candidate is inaccurate; found says where it was seen best */
        bool is;
        enum data_kind data;
        size_t further; /* shapes that were tried since */
    } held;
    size_t room_runs;     /* of found.runs */
    bool measured;        /* the task's own shape, where it is not run whole */
    size_t sampled;       /* of the job's samples: done */
    uint64_t covering_us; /* spent on batches that are only for coverage */
    struct arena *ran_mem;
    struct wire_answer ran; /* the device's last answer, until it is judged; in ran_mem */
    uint32_t drawn;         /* the order in which the batch ran; 0: the first */
    struct timed timed[WIRE_MAX_MODULES];
    struct timed prepared_times[WIRE_MAX_MODULES]; /* without the steps that are done once */
    bool preparing;                                /* the batch is timed without them, now */
    struct meet meet;
    unsigned rechecks;              /* of a batch that was right in an earlier round */
    struct err failed;              /* what it was then */
    uint64_t waited_us;             /* for the job before it */
    uint64_t started_us, timing_us; /* of the job; spent in timed batches */
    uint64_t batch_us;
    uint64_t asked_cpu_ms;                   /* processor time of the role when it was asked */
    uint64_t asked_us, spent_us[STEP_COUNT]; /* waiting for the answers of each step */
};

struct worker {
    struct loop *loop;
    const char *program;
    const struct device_name *name;
    char threads[16];
    uint64_t start_ms; /* before a role has to have said hello */
    struct conn *up;
    struct role device, judge;
    int64_t generation; /* of the device process */
    bool announced;
    int exit_code;     /* -1: running */
    struct frame task; /* type 0: none yet */
    enum step step;
    struct job_walk job;
    struct frame next; /* job; type 0: none */
    uint64_t next_us;  /* when it came */
    uint64_t timer, alive;
    uint64_t random; /* key and position of the order of timed runs */
    uint64_t drawn;
};

/* worker.c */
void role_dismiss(struct role *r); /* asked nothing more, killed, and started again */

/* worker_job.c */
void job_start(struct worker *w, struct frame *f); /* takes the frame */
void job_next(struct worker *w);                   /* from whatever is known: the next request */
void job_answer(struct worker *w, struct role *r, struct frame *f);
void job_device_died(struct worker *w, int status);
void job_judge_died(struct worker *w, int status);
/* Device or judge whose answer the step waits for. */
bool step_is_device(enum step s);
bool step_is_judge(enum step s);

/* The batch under way; NULL: all are done. */
const struct job_batch *batch_now(const struct job_walk *j);

/* worker_modules.c */
bool modules_init(struct job_walk *j, struct err *why); /* of the job's frame */
size_t modules_on_device(const struct job_walk *j);
size_t module_at(const struct job_walk *j, size_t place); /* on the device */
/* From now on the device has one at a time. False: it has no more than one anyway. */
bool modules_part(struct job_walk *j);
void module_drop(struct job_walk *j, size_t module, enum verdict verdict, str why);
/* Of those on the device, for LOAD, RUN and PREPARE; in the arena. */
struct wire_load modules_load(const struct job_walk *j, struct buf *blob, struct arena *a);
struct bound_plan *modules_plans(const struct job_walk *j, const struct job_shape *s, size_t *n,
                                 struct arena *a);
int64_t *modules_workspaces(const struct job_walk *j, const struct job_shape *s, size_t *n,
                            struct arena *a); /* the largest of each number */

/* worker_meet.c */
/* Of the round that comes. */
struct job_case *meet_cases(struct worker *w, size_t *n, struct arena *a);
/* Of the batch, by its place in the round. */
size_t meet_case(const struct job_walk *j, size_t place);
bool meet_is_first(const struct job_walk *j, size_t place);
void meet_keep(struct job_walk *j); /* what the last run measured, once it was judged right */
enum meet_verdict {
    MEET_FINE,
    MEET_AGAIN, /* a further round, with new contents */
    MEET_DRIFT, /* first meetings are slower, by this fraction */
};
enum meet_verdict meet_judge(struct job_walk *j, double *slower);
void meet_clear(struct job_walk *j); /* for another batch */

/* worker_time.c */
void order_make(struct worker *w, size_t ncases, bool timed);
size_t order_case(const struct job_walk *j, size_t run); /* of the order under way */
size_t order_module(const struct job_walk *j, size_t run);
size_t order_module_of(const struct job_walk *j, size_t at); /* that ran a case */
void times_keep(struct job_walk *j);                         /* what the last run measured */
bool times_suffice(const struct job_walk *j); /* or is another round of the batch worth while? */
/* Has the timed batch a module with steps that are done once? And is the time without them known?
 */
bool times_have_once(const struct job_walk *j);
bool times_suffice_prepared(const struct job_walk *j);
void times_report(const struct job_walk *j, struct result *out); /* borrows */
void times_release(struct job_walk *j);

#endif
