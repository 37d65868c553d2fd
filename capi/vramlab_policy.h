/* Policies of every family for programs in other languages: tuners, composers with their guardian, searchers,
   and admitters of jobs. Each is made from JSON text and told what happened; it says what to do next. The
   same policies and the same sessions that the simulator runs; they touch no device themselves.

   Functions return NULL or a value other than 0 where they fail, and vramlab_last_error() says why; what they
   were to write is then untouched. The library never ends the program. A session may be used by one thread at
   a time. Text that a function returns is UTF-8 and valid until the next call with that session.

   Every description may have "plugins": [FILE, ...], shared libraries with further policies; those in the
   folders of the environment's VRAMLAB_PLUGIN_PATH are loaded as well. */
#ifndef VRAMLAB_POLICY_H
#define VRAMLAB_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct vramlab_session vramlab_session;

/* A step as it ended. Sizes in bytes, as torch.cuda.memory_stats() gives them. */
typedef struct vramlab_step {
  int64_t iteration; /* counted from 1 */
  int64_t time_ns;   /* since the start of the run */
  uint64_t allocated;
  uint64_t peak_allocated; /* since the peak counter was last reset */
  uint64_t reserved;
  uint64_t peak_reserved;
  uint64_t total; /* what the program may use: its limit if one is set, else the card */
  uint64_t alloc_retries;
  uint64_t allocator_ooms;
  int32_t oom; /* 0: it succeeded, 1: it failed for lack of memory, 2: it failed for another reason */
} vramlab_step;

/* What the program must do after the step, in this order; each 0 or 1. */
typedef struct vramlab_decision {
  int32_t empty_cache; /* torch.cuda.empty_cache() */
  int32_t reset_peak;  /* torch.cuda.reset_peak_memory_stats() */
  int32_t retry;       /* run the failed step again, at the new parameters */
  int32_t end_run;     /* the policy cannot go on; vramlab_session_reason() says why */
  int32_t moved;       /* the parameters changed */
} vramlab_decision;

/* ---- Tuners: after each step, the parameters of the next one. ----

   json: {"use": "dual-optimizer", "profile": "settled", OPTION: value, ...,
          "parameters": {"batch": {"start": 12, "low": 2, "high": 64}, "lq": {...}}}
   (`vramlab policies NAME` lists the options). NULL if something in it is wrong.

   The options of dual-optimizer may also stand as a training framework has them: in a section
   "training_automations": {"DynamicBatchSizeOptimizer": {OPTION: value, ...}}, or in a YAML file with that
   section, "options_file": PATH. An option given plainly counts before the section's, and that before the
   file's. "cards": "sum" lets the policy see several cards as one; by default it sees the fullest. Its
   "batch" and "lq" may leave out "low" and "high", which are then min_batch_size, max_batch_size, min_lq_size
   and max_lq_size, and "start", which is then the lowest value. */
vramlab_session* vramlab_session_create(const char* json);
void vramlab_session_destroy(vramlab_session* session);

/* Tells the session how the step at its parameters ended; its answer is in `decision`. */
int vramlab_session_after_step(vramlab_session* session, const vramlab_step* step,
                               vramlab_decision* decision);

/* The same for a workload on `count` cards; iteration and time are those of the first. */
int vramlab_session_after_cards(vramlab_session* session, const vramlab_step* cards, uint64_t count,
                                vramlab_decision* decision);

/* A phase of its own between two steps (validation, for one). */
typedef struct vramlab_phase {
  const char* name;
  int32_t begins;          /* 1: it is about to run; 0: it has ended */
  int32_t oom;             /* as of a step */
  uint64_t peak_allocated; /* within it */
  uint64_t asked;          /* of a failed one: the bytes of the request that found no room */
  /* By parameter in the order of the description, each may be NULL: what the phase runs at, by default what
     training runs at; and where that is so many times the value of training, that factor. 0: a value of its
     own. */
  const int64_t* ran;
  const int64_t* follow;
} vramlab_phase;

/* The step that is told of next failed, and this was the request that found no room, in bytes. */
int vramlab_session_asked(vramlab_session* session, uint64_t bytes);

/* Tells of a phase; `reading` is taken at that moment. The answer is obeyed as that to a step. */
int vramlab_session_phase(vramlab_session* session, const vramlab_phase* phase, const vramlab_step* reading,
                          vramlab_decision* decision);

/* The next step is the first of a new process: what was read of memory before holds no more. So is that after
   create and load. */
int vramlab_session_new_process(vramlab_session* session);

/* Parameters and what the policy knows, as text to keep with a checkpoint; "" if it saves nothing. `load`
   goes on from it in a session of equal description. */
const char* vramlab_session_save(vramlab_session* session);
int vramlab_session_load(vramlab_session* session, const char* saved);

/* The value of a parameter for the next step. */
int vramlab_session_get(const vramlab_session* session, const char* parameter, int64_t* value);

/* The bounds of a parameter: it never leaves them. */
int vramlab_session_bounds(const vramlab_session* session, const char* parameter, int64_t* low,
                           int64_t* high);

/* Tells the session that the program itself runs at another value now; moved into its bounds. */
int vramlab_session_set(vramlab_session* session, const char* parameter, int64_t value);

/* The reason of the last decision; empty if nothing was evaluated. Valid until the next call. */
const char* vramlab_session_reason(const vramlab_session* session);

/* What the policy had to say of the last step, a line each; warnings begin with "warning: ". Empty if
   nothing. Valid until the next call. */
const char* vramlab_session_log(const vramlab_session* session);

/* [{"iteration", "from": {NAME: value}, "to": {...}, "reason"}], every change so far. Valid until the next
 * call. */
const char* vramlab_session_adjustments(vramlab_session* session);

/* {NAME: number}, what the policy knows of itself. Valid until the next call. */
const char* vramlab_session_statistics(vramlab_session* session);

/* ---- Composers: which samples make the next batch, under a memory budget. ---- */

typedef struct vramlab_composer vramlab_composer;

/* One sample of a data set; its number is its place. */
typedef struct vramlab_sample {
  uint32_t task;  /* number of its task */
  int32_t images; /* at least 0 */
  int64_t length; /* tokens of its text, at least 0 */
  int64_t tokens; /* positions it takes in a padded row, text and images; at least 1 */
} vramlab_sample;

enum vramlab_batch_action {
  VRAMLAB_BATCH_RUN = 0,        /* train on `samples` */
  VRAMLAB_BATCH_CLEAN_UP = 1,   /* empty the cache, read again and ask again */
  VRAMLAB_BATCH_EPOCH_OVER = 2, /* no sample waits; those of batches that run may come back */
  VRAMLAB_BATCH_GIVE_UP = 3     /* nothing fits; vramlab_composer_reason() says why */
};

typedef struct vramlab_batch {
  int32_t action;
  int32_t oversize;        /* 1: one sample that alone is predicted over budget */
  int32_t checkpointing;   /* 1: run it with activation checkpointing */
  int32_t accumulates;     /* 1: it goes on with an effective batch that has begun */
  const uint32_t* samples; /* valid until the next call */
  uint64_t count;
  uint64_t predicted;         /* bytes above what is allocated before it; 0: no prediction */
  uint64_t predicted_at_most; /* what the budget was held against */
} vramlab_batch;

/* How a batch ended. */
typedef struct vramlab_batch_end {
  int32_t oom;     /* as of a step */
  int32_t typical; /* 0: the first step of a process, or with checkpointing; nothing to learn from */
  uint64_t
      rise; /* peak of allocated bytes above what was allocated before; failed: what was wanted at least */
  uint64_t peak;  /* highest allocated */
  uint64_t total; /* what the program may use */
} vramlab_batch_end;

typedef struct vramlab_batch_next {
  int32_t steps;    /* 1: the optimizer steps now, over `effective` samples */
  int32_t gives_up; /* 1: too many batches failed in a row */
  int64_t effective;
  int64_t skipped; /* samples that are left out of this epoch */
} vramlab_batch_next;

/* json: {"use": "memory-aware-sampler", "profile": "dense", OPTION: value, ..., "tasks": ["text", ...],
          "target_batch": 0, "seed": 1, "shuffle": true, "packs": false}
   target_batch: samples of an effective batch, 0 = each batch is one. packs: the collator puts several
   samples into a row. Begins with epoch 0. */
vramlab_composer* vramlab_composer_create(const char* json, const vramlab_sample* samples, uint64_t count);
void vramlab_composer_destroy(vramlab_composer* composer);

/* Another data set from here on, at the beginning of epoch 0; what was learnt stays. No batch may run. */
int vramlab_composer_samples(vramlab_composer* composer, const vramlab_sample* samples, uint64_t count);

/* Ends the epoch at work and begins another. `effective`: samples of the last effective batch of the old one,
   0 if none is open; may be NULL. */
int vramlab_composer_begin_epoch(vramlab_composer* composer, int64_t epoch, int64_t* effective);

/* The next batch. Several may run at once (a loader that fetches ahead), unless there is a target_batch. */
int vramlab_composer_next(vramlab_composer* composer, const vramlab_step* reading, vramlab_batch* batch);

/* What batches may take from the next one on, such as a tuner's answer. budget: bytes that may be allocated
   at a batch's peak, in place of the composer's own budget and margin; 0 = its own. At most what the program
   may use, as the last reading said; only for composers that foresee memory. most_samples: of a batch; 0 = as
   many as the composer takes. Batches that were handed out keep theirs. */
int vramlab_composer_limits(vramlab_composer* composer, uint64_t budget, int64_t most_samples);

/* A batch, as it was handed out, has ended. The samples of one that ran out of memory wait again: the
   guardian cuts it to pieces. */
int vramlab_composer_told(vramlab_composer* composer, const uint32_t* samples, uint64_t count,
                          const vramlab_batch_end* end, vramlab_batch_next* next);

/* Samples that wait, those of batches that run left out; and the epoch, from 0. */
int vramlab_composer_left(const vramlab_composer* composer, uint64_t* left, int64_t* epoch);

/* Of the last answer; and {NAME: number}, what the policy knows of itself. */
const char* vramlab_composer_reason(const vramlab_composer* composer);
const char* vramlab_composer_statistics(vramlab_composer* composer);

/* Where the epoch stands and what was learnt, as JSON text. `load` goes on from it in a session of equal
   description and data; where it fails, the session is as it was or can only be destroyed. */
const char* vramlab_composer_save(vramlab_composer* composer);
int vramlab_composer_load(vramlab_composer* composer, const char* saved);

/* ---- Searchers: the largest batch that fits, found by probes. ---- */

typedef struct vramlab_searcher vramlab_searcher;

/* json: {"use": "model", OPTION: value, ..., "low": 1, "high": 512} */
vramlab_searcher* vramlab_searcher_create(const char* json);
void vramlab_searcher_destroy(vramlab_searcher* searcher);

/* What to do next: {"action": "probe" | "found" | "none_fits" | "give_up", "batch", "extrapolated", "reason",
   "steps", "all_phases", "varied_steps", "varied_starts", "share", "largest_good", "by_option"}. A probe is
   `steps` steps at `batch` in each phase, or in the first; where the job's shapes vary, before them
   `varied_starts` times `varied_steps` steps of the first phase with such shapes, each time from a fresh
   start. It may reserve `share` of the memory. */
const char* vramlab_searcher_next(vramlab_searcher* searcher, const vramlab_step* reading);

/* What the probe found: {"batch", "outcome": "ok" | "oom" | "held" | "failed", "phase", "error",
   "cards": [{"start", "free", "peak", "peak_reserved", "current", "total"}]}, in bytes:
   start: allocated before it, cache emptied; free: what could still have been reserved then; peak: highest
   allocated; current: allocated after its last step. held: out of memory, and after the clean-up memory of
   the probe is still held. phase: where it failed, else where the peak was. */
int vramlab_searcher_told(vramlab_searcher* searcher, const char* json);

/* ---- Admitters: which of several processes may use which card, and how large. ---- */

typedef struct vramlab_admitter vramlab_admitter;

/* json: {"use": "job-queue", "profile": "backfill", OPTION: value, ..., "cards": [BYTES, ...]}
   cards: what each card of this machine offers to jobs. Times are those of one clock, from anywhere. */
vramlab_admitter* vramlab_admitter_create(const char* json);
void vramlab_admitter_destroy(vramlab_admitter* admitter);

/* Everything it knows, as JSON text: {"jobs": [JOB, ...], "foreign": [BYTES, ...], ...}. A JOB is {"id",
   "name", "state": "waits" | "runs" | "refused" | "failed", "cards", "need", "batch", "accumulation",
   "reason", ...}. `load` goes on from it, in a session of equal description without jobs, in another process
   perhaps. */
const char* vramlab_admitter_save(vramlab_admitter* admitter);
int vramlab_admitter_load(vramlab_admitter* admitter, const char* saved);

/* A job that waits from now on, or is refused: {"name", "need": BYTES, "per_sample": BYTES, "batch",
   "least_batch", "share_milli", "cards", "priority", "expected_ns", "patience_ns", "variants": [{"name",
   "need", "per_sample", "least_batch"}]}; all but the need may be left out. It takes need + per_sample ·
   batch on each of its cards. patience_ns: how long it waits at most. variants: other ways to run it, such as
   with checkpointing. Its number is in `job`. */
int vramlab_admitter_submit(vramlab_admitter* admitter, const char* json, int64_t now_ns, uint32_t* job);

/* Starts what may start, and ends waits that are over. Call it after each change, and from time to time. */
int vramlab_admitter_examine(vramlab_admitter* admitter, int64_t now_ns);

/* A JOB, as in `save`. */
const char* vramlab_admitter_job(vramlab_admitter* admitter, uint32_t job);

/* The job's process ran out of memory; it waits again or has failed. */
int vramlab_admitter_out_of_memory(vramlab_admitter* admitter, uint32_t job, int64_t now_ns);

/* The job is over, or its owner died: it leaves, whatever its state. */
int vramlab_admitter_leave(vramlab_admitter* admitter, uint32_t job);

/* What the job's process has on each of its cards, and what strangers hold of a card, in bytes. */
int vramlab_admitter_used(vramlab_admitter* admitter, uint32_t job, uint64_t bytes);
int vramlab_admitter_foreign(vramlab_admitter* admitter, uint32_t card, uint64_t bytes);

/* Why the last call of this thread failed. */
const char* vramlab_last_error(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
