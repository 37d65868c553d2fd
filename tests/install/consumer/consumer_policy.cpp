// A tuner that goes to the batch it is told and stays there.
#include "plugins/plugin.hpp"

namespace {

using namespace vramlab;

struct JumpOptions {
  std::int64_t to = 6;
};

const OptionTable<JumpOptions>& table() {
  static const OptionTable<JumpOptions> rows{
      .owner = "jump", .options = {{"to", &JumpOptions::to, "samples", 1, 1000, "where it goes"}}};
  return rows;
}

class Jump final : public Tuner {
 public:
  explicit Jump(const JumpOptions& options) : options_(options) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation&) override {
    TunerAnswer answer;
    answer.delta.assign(question.point.size(), 0);
    answer.delta[0] = options_.to - question.point[0];
    if (answer.moves()) answer.reason = "there at once";
    return answer;
  }

 private:
  JumpOptions options_;
};

void add(PolicySet& policies) {
  policies.tuners.add({.name = "jump",
                       .summary = "goes to one batch and stays there",
                       .options = table().describe(),
                       .profiles = {},
                       .default_profile = {},
                       .make = [](const OptionMap& options, const ParameterSpace&) {
                         return std::make_unique<Jump>(table().parse(options));
                       }});
}

}  // namespace

VRAMLAB_PLUGIN("jump", "1.0", add)
