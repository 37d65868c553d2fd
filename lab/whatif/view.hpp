// What an answer to a what-if question comes to: in sentences and as JSON.
#pragma once

#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/page/sections.hpp"
#include "lab/whatif/whatif.hpp"
#include "report/pictures.hpp"

namespace vramlab {

/// One sentence for each card and limit: what fits, which setting helps this program, by how much and at what
/// cost, or that none does.
std::vector<std::string> whatif_verdict(const std::vector<ClientProgram>& programs,
                                        const WhatIfAnswer& answer);

/// What the reader must know beside it: what was supposed, and in which direction the answer errs.
std::vector<std::string> whatif_notes(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer);

/// "(default)" for an empty string of settings.
std::string conf_name(const std::string& conf);

/// "yes, 1.6 GiB to spare" or "no: 2.8 GiB short in step 41".
std::string fit_text(const ClientProgram& program, const WhatIfRow& row);

/// Name of the card with its limit: "rtx-4090-24gb, limit 20.0 GiB".
std::string room_name(const WhatIfRow& row);

/// Whether the row's room rests on a context that was not measured on its card; a limit below does not.
bool assumes_context(const WhatIfRow& row);

/// The share of the reserved memory that was not active when most of it was.
double fragmentation(const ProgramOutcome& outcome);

// Answers to what-if questions as JSON.

/// One member of "rows", and of its "marks".
Json whatif_row_json(const ClientProgram& program, const WhatIfRow& row);
Json whatif_mark_json(const MarkFigures& mark);

/// {"file", "rows", "peak", …} as docs/cli.md lists it; several programs add "ranks", one such object each.
/// The answer must have kept its peaks.
Json whatif_json(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer);

/// The time line of the categories as a picture, with what the row had to itself as its limit.
MemoryPicture timeline_picture(const ClientProgram& program, const Holders& holders, const WhatIfRow& row);

/// What the page shows of one program beside what its replays kept.
struct MemoryPage {
  std::string title;
  SectionHead head;
  std::vector<std::string> notes;
  std::string caption;     ///< of the settings
  Table settings;          ///< a row for each combination, and what else stands there
  std::vector<Json> maps;  ///< by row: the section that shows the address space under it, or null
};

/// A section of the page (page.cpp) with the settings alone.
Json settings_section(const MemoryPage& page);

/// A section of the page (page.cpp): settings, time line, categories, blocks at the peak of reserved memory,
/// flame graph, pins and failures. The answer must have kept maps.
Json memory_section(const ClientProgram& program, const Holders& holders, const PeakMemory& peak,
                    const MemoryPage& page);

}  // namespace vramlab
