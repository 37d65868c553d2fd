// The skeleton as a plugin, under another name: its source as it is, and the lines that make it a plugin.
#include "plugins/plugin.hpp"
#include "policies/tuners/skeleton.cpp"

namespace {

void add(vramlab::PolicySet& policies) {
  policies.tuners.add(vramlab::skeleton_entry());
  policies.tuners.entries.back().name = "skeleton-twin";
}

}  // namespace

VRAMLAB_PLUGIN("skeleton-twin", "1.0", add)
