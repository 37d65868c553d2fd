// Looks at the names of files before any work is done, so that a late mistake costs no time and no file.
#pragma once

#include <string>
#include <vector>

namespace vramlab {

/// `snapshots`, and what lies beside them and is read with them: their truth and marks files.
std::vector<std::string> with_siblings(const std::vector<std::string>& snapshots);

/// Throws InputError if one of `outputs` lies in a folder that is missing, is an input, or is named twice.
/// Empty names and "-" are passed over.
void require_output_names(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

}  // namespace vramlab
