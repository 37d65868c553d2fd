// Every built-in policy of every family a second time, as a plugin: NAME-twin.
#include "plugins/plugin.hpp"

namespace {

template <class Kinds>
void add_twins(const Kinds& kinds, Kinds& to) {
  for (auto kind : kinds) {
    kind.name += "-twin";
    to.add(std::move(kind));
  }
}

void add(vramlab::PolicySet& policies) {
  add_twins(vramlab::builtin_policies()->tuners, policies.tuners);
  add_twins(vramlab::builtin_policies()->admitters, policies.admitters);
  add_twins(vramlab::builtin_policies()->searchers, policies.searchers);
  add_twins(vramlab::builtin_policies()->composers, policies.composers);
}

}  // namespace

VRAMLAB_PLUGIN("twins", "1.0", add)
