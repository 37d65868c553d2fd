// What several verbs take: where steps run, plugins, threads, stacks, files; and what this build can do on a
// real card.
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/snapshot/stack_groups.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/runs/job_process.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// Adds --device and --time-scale.
void add_device_options(Options& options);

/// What runs the steps of a scenario, and of its jobs; empty = on pretended cards.
struct DeviceMakers {
  MakePerformer performer;
  MakeJobCard job_card;
  std::size_t cards = 1;  ///< that there are
};

/// Empty for pretended cards; with `--device cuda` the machine's, where segment source, executor, probe and
/// clock are real and nothing else changes. Throws InputError for any other device, for a time scale out of
/// range or without a card, and if this build has no CUDA.
DeviceMakers chosen_device(const Arguments& arguments);

/// What results say that came from there.
inline constexpr const char* kOnCard = "Performed on this machine's card, in real memory.";

/// Of this machine's cards (SharedCard). Throws InputError if this build has no CUDA.
DeviceMakers card_makers(double time_scale);

/// validate-device, without its help.
int validate_device(const Arguments& arguments, Output& output);

/// The process that holds memory for others (cuda/memory_holder.hpp), and that of a job
/// (cuda/job_worker.hpp), on a visible card.
int hold_card_memory(int device);
int perform_card_job(int device);

// The option --plugin, and the folders of VRAMLAB_PLUGIN_PATH.

void add_plugin_option(Options& options);

/// The built-in policies, those of the library's caller, and those of all plugins: first of the folders that
/// the environment names, then of the option, in the order given. Throws InputError for the first that cannot
/// be loaded, and for one that would be overwritten.
std::shared_ptr<const PolicySet> chosen_policies(const Arguments& arguments, Output& output);

/// How long a policy of a plugin may take in a process of its own; empty if it gets none. Throws InputError
/// for a limit out of range.
std::optional<std::chrono::seconds> chosen_isolation(const Arguments& arguments);

// The option --policies: labels of a scenario.

void add_labels_option(Options& options);

/// Empty if all are meant. Throws InputError for an empty label.
std::vector<std::string> chosen_labels(const Arguments& arguments);

// The option -j: how many threads.

/// Results never depend on it. By default all cores.
void add_threads_option(Options& options);

/// At least 1.
unsigned chosen_threads(const Arguments& arguments);

// How blocks of memory are grouped by their stacks.

/// Adds --by, --depth and --folded.
void add_grouping_options(Options& options, const char* folded);

/// Throws InputError for a name there is not and for a depth below 1.
Grouping chosen_grouping(const Arguments& arguments);

// The option --torch-version, of verbs that read recordings.

void add_torch_version_option(Options& options);

/// Empty if it was not given. Throws InputError for what is not a version.
std::optional<TorchVersion> chosen_torch_version(const Arguments& arguments);

// Looks at the names of files before any work is done, so that a late mistake costs no time and no file.

/// `snapshots`, and what lies beside them and is read with them: their truth and marks files.
std::vector<std::string> with_siblings(const std::vector<std::string>& snapshots);

/// What `arguments` name to be read: operands, and options of every verb that name files. Folders and what is
/// not there are among them.
std::vector<std::string> input_names(const Arguments& arguments);

/// What `arguments` name to be written, by options of every verb.
std::vector<std::string> output_names(const Arguments& arguments);

/// Throws InputError if one of `outputs` is the same file as one of `inputs`, whatever both are called: by
/// links of either sort, or another spelling. Names of no regular file are passed over.
void require_kept(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

/// The same for what is to be written into `folder`, which may not be there yet, under names that begin with
/// those of `labels` (lab/experiment.hpp: file_bases).
void require_kept(const std::vector<std::string>& inputs, const std::vector<std::string>& labels,
                  const std::string& folder);

/// Throws InputError as require_kept does, and if one of `outputs` lies in a folder that is missing or is
/// named twice. Empty names and "-" are passed over.
void require_output_names(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

/// What `read` makes of each of `files`, in one list.
template <class Read>
auto read_each(const std::vector<std::string>& files, const Read& read) {
  decltype(read(files.front())) all;
  for (const std::string& file : files) std::ranges::move(read(file), std::back_inserter(all));
  return all;
}

// The scenario files that operands stand for.

/// A folder stands for the scenario files (*.json) in it and below, in the order of their names; any other
/// path for itself. Throws InputError for a folder without one.
std::vector<std::string> scenario_files(const std::vector<std::string>& paths);

}  // namespace vramlab
