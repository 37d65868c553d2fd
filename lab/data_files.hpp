// Where a file named in a scenario is looked up.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace vramlab {

/// The folder with the models and scenarios that come with the program: `share/vramlab` beside an
/// installed program, else the source tree it was built in. Empty if neither is found.
std::filesystem::path data_folder();

/// The file that `name` means in `scenario`: beside the scenario, then here, then in the data folder.
/// Empty if it is in none of them.
std::optional<std::filesystem::path> find_data_file(const std::string& name,
                                                    const std::filesystem::path& scenario);

}  // namespace vramlab
