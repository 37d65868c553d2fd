// Policies of plugins that may end the program, crash or never answer: each is tried in a process of its own.
#pragma once

#include <chrono>

#include "lab/scenario/file.hpp"

namespace vramlab {

/// `document` as it is, but that a policy of a plugin which took the program with it has become one whose
/// runs end at their first question, with what it did as the reason: it ended the program, crashed, or took
/// longer than `limit`. For that every entry of "policies" that is a plugin's runs once in a process of its
/// own, on a pretended card. Equal questions get equal answers, so that its run in this process goes the same
/// way. What else is wrong with the document is not looked at. Throws InputError where the system makes no
/// process.
ScenarioDocument isolated(ScenarioDocument document, std::chrono::seconds limit);

}  // namespace vramlab
