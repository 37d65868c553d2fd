// Adds the policies of plugins to a set.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// `known` and the policies of the plugin in `file`, guarded. A file whose policies are in `known` already
/// adds nothing. Throws InputError, and nothing of the plugin is kept, for a file that is not a shared
/// library, lacks the function, was built for another ABI number or by another toolchain, or names a policy
/// that there is.
std::shared_ptr<const PolicySet> with_plugin(const std::shared_ptr<const PolicySet>& known,
                                             const std::filesystem::path& file);

/// The shared libraries (*.so) of `folder`, in the order of their names. Throws InputError if it is none.
std::vector<std::filesystem::path> plugins_in(const std::filesystem::path& folder);

/// `known` and the policies of all plugins in `folders`, which are separated by colons; empty names are
/// passed over. Throws InputError for the first that cannot be loaded.
std::shared_ptr<const PolicySet> with_plugin_path(std::shared_ptr<const PolicySet> known,
                                                  const std::string& folders);

}  // namespace vramlab
