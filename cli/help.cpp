// Which verbs there are, and the page that lists them.
#include "cli/verb.hpp"

namespace vramlab {

const std::vector<VerbGroup>& verb_groups() {
  static const std::vector<VerbGroup> groups{
      {"an out-of-memory message, or a snapshot.pickle that PyTorch wrote",
       {explain_verb(), whatif_verb(), advise_verb(), plan_verb(), diff_verb(), judge_verb(), verify_verb()}},
      {"a model, or recorded steps of one",
       {fit_verb(), predict_verb(), find_batch_verb(), estimate_verb(), models_verb()}},
      {"a policy, or the choice between several",
       {compare_verb(), run_verb(), matrix_verb(), check_verb(), plot_verb(), policies_verb(),
        new_policy_verb(), metrics_verb()}},
      {"a card, or many machines", {gpus_verb(), validate_device_verb(), merge_verb()}},
      {"an editor, or a shell", {schema_verb(), completion_verb()}}};
  return groups;
}

std::string help() {
  std::string text =
      "vramlab replays memory policies and PyTorch's caching allocator on a simulated card.\n\n"
      "usage: vramlab VERB [options]\n\n";
  for (const VerbGroup& group : verb_groups()) {
    text += "you have " + group.have + ":\n";
    for (const Verb& verb : group.verbs) {
      text += "  " + verb.name + std::string(17 - verb.name.size(), ' ') + verb.summary + '\n';
    }
    text += '\n';
  }
  return text + "vramlab help VERB   options, an example and the exit codes\n";
}

}  // namespace vramlab
