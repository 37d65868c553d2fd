// The kinds of policies that a plugin adds, as the program lists them: equal to the plugin's own, but what
// they make is guarded, and their options are checked against their description before the plugin sees them.
#pragma once

#include "plugins/guard.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

TunerEntry guarded(TunerEntry kind, const PluginCode& code);
AdmitterEntry guarded(AdmitterEntry kind, const PluginCode& code);
ComposerEntry guarded(ComposerEntry kind, const PluginCode& code);
SearcherEntry guarded(SearcherEntry kind, const PluginCode& code);

/// `given` with every value as its description's type has it. Throws InputError with every problem.
OptionMap checked_options(const std::string& policy, const std::vector<OptionDescription>& options,
                          const OptionMap& given);

/// The guarded `kind`: `Guarded` is made of a guard and a function that makes the policy behind it.
template <class Guarded, class Made, class... Setting>
PolicyKind<Made, Setting...> guarded_kind(PolicyKind<Made, Setting...> kind, const PluginCode& code) {
  // The function's own code is the plugin's: it must go before the library does.
  struct Maker {
    PluginCode code;
    std::string name;
    std::vector<OptionDescription> options;
    std::function<std::unique_ptr<Made>(const OptionMap&, Setting...)> make;

    std::unique_ptr<Made> operator()(const OptionMap& given, Setting... setting) const {
      const OptionMap checked = checked_options(name, options, given);
      Guard guard{name, code};
      auto made = make_guarded<Made>(guard, [&] { return make(checked, setting...); });
      return std::make_unique<Guarded>(std::move(guard), std::move(made));
    }
  };
  kind.make = Maker{code, kind.name, kind.options, std::move(kind.make)};
  return kind;
}

}  // namespace vramlab
