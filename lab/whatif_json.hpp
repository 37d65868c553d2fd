// Answers to what-if questions as JSON.
#pragma once

#include <vector>

#include "lab/json_text.hpp"
#include "lab/peak_memory.hpp"
#include "lab/whatif.hpp"

namespace vramlab {

/// One member of "rows", and of its "marks".
Json whatif_row_json(const ClientProgram& program, const WhatIfRow& row);
Json whatif_mark_json(const MarkFigures& mark);

/// {"file", "rows", "peak", …} as docs/cli.md lists it; several programs add "ranks", one such object each.
Json whatif_json(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer,
                 const std::vector<PeakMemory>& peaks);

}  // namespace vramlab
