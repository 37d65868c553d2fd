// Reads the options of `dual-optimizer` out of a training framework's YAML file.
#pragma once

#include <string>

#include "policies/option_map.hpp"

namespace vramlab {

/// The options in `text`, the content of `file` (for messages only):
///
///     training_automations:
///       enabled: true
///       DynamicBatchSizeOptimizer: {enabled: true, target_vram_usage: 0.85, …}
///
/// Everything else in the file is left alone. `enabled: false` at either level gives `enabled: false`.
/// The place of each option is "FILE:LINE". Throws InputError for text that is no YAML, for a file without
/// that section, for values that are no scalars and for keys given twice; unknown keys and ranges are
/// checked where the options are used.
OptionMap read_dual_optimizer_yaml(const std::string& text, const std::string& file);

/// The same from a file on disk. Throws InputError if it cannot be read.
OptionMap load_dual_optimizer_yaml(const std::string& file);

}  // namespace vramlab
