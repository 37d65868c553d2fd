/* The verbs of the program `vramlab` for other programs (libvramlab.so): what would fit, why it did not,
   which policy is best. The answer is the JSON that `vramlab VERB ... --json -` prints, byte for byte; and
   policies of the caller's own may take part in simulations.

   Nothing here ends the program, changes its signals or touches its standard streams; files are read and
   written where words name them. There is no state between calls, so that threads may ask at once. Text is
   UTF-8. */
#ifndef VRAMLAB_H
#define VRAMLAB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct vramlab_answer vramlab_answer;
typedef struct vramlab_policies vramlab_policies;

/* Does what the program would do with these words.

   json: {"words": ["whatif", "run.pickle", "--capacity", "24GiB"], "texts": {NAME: "..."}}
   texts: what stands for files of these names where a scenario is read; "-" is standard input. May be left
   out. policies: of the caller's own, besides the built-in ones and those of plugins; may be NULL. NULL only
   if there is no memory for an answer; give what is returned to vramlab_answer_destroy.

   --device cuda and validate-device are the program's alone. */
vramlab_answer* vramlab_ask(const char* json, const vramlab_policies* policies);
void vramlab_answer_destroy(vramlab_answer* answer);

/* The program's exit code: 0 done, 1 an expectation failed, 2 bad input, 3 internal error. */
int vramlab_answer_code(const vramlab_answer* answer);

/* The JSON, what the program would have shown, and what it would have said on standard error; each "" if
   there is none. Valid until the answer is destroyed. */
const char* vramlab_answer_json(const vramlab_answer* answer);
const char* vramlab_answer_text(const vramlab_answer* answer);
const char* vramlab_answer_error(const vramlab_answer* answer);

/* ---- Policies of the caller's own: tuners, composers, searchers and admitters. ----

   One function answers for all of them, in JSON; it may be called from several threads, for one instance by
   one at a time. What an answer may be is checked as with plugins: a wrong one ends the run of that policy
   with a reason, and nothing else.

   Questions are {"do": ...}:
   "make"     {"policy": NAME, "options": {...}}, "parameters": {NAME: [low, high]} of a tuner, "tasks":
              [NAME] of a composer; answer {"instance": N, "methods": ["phase" | "told" | "statistics" |
              "save"]}, and where wanted "depth": {"steps", "all_phases", "varied_steps", "varied_starts",
              "share"} of a searcher, "batch_size", "adaptive" and "window" (how many waiting samples it
              is shown) of a composer, "rules": {"wait_timeout_s", "poll_s", "job_timeout_s", "lease_s",
              "per_phase", "enforces_promise"} of an admitter.
   "decide"   every question but an admitter's has "observation": {"iteration", "time_ns", "reading",
   "after_phase", "new_process", "memory": {"allocated", "peak_allocated", "reserved", "peak_reserved",
              "total", "alloc_retries", "allocator_ooms"}, "cards": [the same]}.
     tuner    {"point": {NAME: value}, "ran": {...}, "result": "ok" | "oom" | "error", "asked": bytes};
              answer {"change": {NAME: difference}, "reason", "log": [...], "reset_peak", "empty_cache",
              "retry", "end_run"}
     searcher {"low", "high", "last": {"batch", "outcome", "phase", "error", "cards": [...]} | null};
              answer {"action": "probe" | "found" | "none_fits" | "give_up", "batch", "reason",
              "extrapolated", "largest_good", "by_option"}
     composer {"waiting": [numbers, oldest first], "left", "most", "packs", "accumulates", "cleaned_up"},
              at first and after "make" with "samples": [[task, images, length, tokens]]; answer
              {"action": "run" | "clean_up" | "give_up", "batch": [numbers], "likely", "at_most",
              "oversize", "checkpointing", "reason"}
     admitter {"event": "submitted" | "examine" | "deadline" | "oom", "now_ns", "pass", "cards": [{"total",
              "free", "allocated", "reserved", "foreign", "promised", "held", "jobs", "node"}], "waiting":
              [{"job", "ticket", "since_ns", "expected_ns" | null, "demand"}, oldest first], "running":
              [{"job", "cards", "promised", "used", "expected_end_ns" | null}], "accounts": [{"quota" | null,
              "promised"}]}; but for "examine" also "job" and "demand"; for "oom" also "batch" and "attempts".
              A demand is {"need", "per_sample", "least_batch", "share_milli", "batch", "effective", "cards",
              "priority", "account", "overdue", "variants"}, "free" what neither jobs nor strangers hold,
              each job at the larger of promise and use. "examine" is asked until the answer is "wait", or
              none. Answer {"action": "wait" | "start" | "refuse" | "fail" | "requeue" | "to_back", "job",
              "reason"}; to "start" {"cards": [numbers], "need", "batch", "accumulation", "variant"}, to
              "requeue" {"need", "per_sample", "share_milli", "batch", "overdue"}: what is left out is as the
              job asked for it
   "phase"    {"name", "point", "ran", "follow", "begins", "result", "peak_allocated", "asked"}; answered
              as "decide"
   "told"     {"batch", "result", "rise", "typical"}; answer {"skip": true} leaves out the samples of a
              failed one
   "epoch_ends", "statistics" ({NAME: number}), "save" ({"state": text, of a composer a list of numbers}),
   "load" {"state"}, "drop": the instance is not needed any more.

   All but "make" are for `instance`. Return 0; or another number, and say why in `reply`: 2 in "make" and
   "load" refuses the options or the state, anything else is a fault of the policy. */
typedef struct vramlab_reply vramlab_reply;
typedef int (*vramlab_policy_call)(void* context, uint64_t instance, const char* question,
                                   vramlab_reply* reply);

/* Sets what the call answers; the text is copied. Only within the call. */
void vramlab_reply_set(vramlab_reply* reply, const char* text);

vramlab_policies* vramlab_policies_create(void);
void vramlab_policies_destroy(vramlab_policies* policies);

/* json: {"family": "tuner" | "composer" | "searcher" | "admitter", "name", "summary", "options": [{"name",
   "default", "low", "high", "choices", "help"}]}. Returns 0, or 1 and vramlab_policies_error() says why. */
int vramlab_policies_add(vramlab_policies* policies, const char* json, vramlab_policy_call call,
                         void* context);
const char* vramlab_policies_error(const vramlab_policies* policies);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
