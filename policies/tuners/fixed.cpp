// `fixed`: never moves; what the other policies are measured against.
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

class Fixed final : public Tuner {
 public:
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return {}; }
};

std::unique_ptr<Tuner> make_fixed(const OptionMap& options, const ParameterSpace&) {
  checked_values(options, {}, "fixed");
  return std::make_unique<Fixed>();
}

}  // namespace

TunerEntry fixed_entry() {
  return {.name = "fixed", .summary = "keeps the parameters it starts with", .make = make_fixed};
}

}  // namespace vramlab
