#include "plan/capacity_search.hpp"

#include <algorithm>
#include <limits>

namespace vramlab {

CapacitySearch::CapacitySearch(const std::vector<Buffer>& buffers, const Timeline& timeline)
    : buffers_(buffers),
      timeline_(timeline),
      begin_at_(timeline.load.size()),
      offsets_(buffers.size()),
      covers_(timeline.load.size() + 1) {
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size > 0) begin_at_[timeline.spans[i].begin].push_back(i);
  }
}

CapacitySearch::Answer CapacitySearch::run(Bytes capacity, const std::vector<std::int64_t>& scores,
                                           std::size_t most_nodes) {
  nodes_ = 0;
  dead_ends_.clear();
  if (capacity < timeline_.peak) return Answer::does_not_fit;
  capacity_ = capacity;
  scores_ = &scores;
  most_nodes_ = most_nodes;
  height_.assign(timeline_.load.size(), 0);
  slack_.clear();
  for (const Bytes load : timeline_.load) slack_.push_back(capacity - load);
  offsets_.assign(buffers_.size(), 0);
  least_offset_.assign(buffers_.size(), 0);
  placed_.assign(buffers_.size(), false);
  changes_.clear();
  return search({0, timeline_.load.size()});
}

CapacitySearch::Answer CapacitySearch::search(const Part& part) {
  const std::size_t start = changes_.size();
  Choice choice;
  Step step = Step::changed;
  while (step == Step::changed) step = next_choice(part, choice);
  if (step == Step::done) return Answer::fits;
  Answer answer = Answer::does_not_fit;
  if (step == Step::choose) {
    const std::vector<Part> parts = parts_of(part);
    if (parts.size() == 1 && parts.front().begin == part.begin && parts.front().end == part.end) {
      answer = ++nodes_ > most_nodes_ ? Answer::open : try_all(choice, part);
    } else {
      answer = Answer::fits;
      for (auto one = parts.begin(); one != parts.end() && answer == Answer::fits; ++one) {
        answer = search(*one);
      }
    }
  }
  if (answer != Answer::fits) take_back(start);
  return answer;
}

// What was tried at a height and led nowhere is not tried there again: a plan that has it elsewhere has it
// higher.
CapacitySearch::Answer CapacitySearch::try_all(const Choice& choice, const Part& part) {
  for (const std::uint32_t buffer : choice.buffers) {
    const std::size_t before = changes_.size();
    place(buffer);
    if (const Answer answer = search(part); answer != Answer::does_not_fit) return answer;
    take_back(before);
    refuse(buffer);
  }
  return choice.may_refuse ? search(part) : Answer::does_not_fit;
}

// Cut where no buffer that is still to be placed lives on both sides: what happens in one part is nothing to
// the others. The smallest first, since one that fails ends them all.
std::vector<CapacitySearch::Part> CapacitySearch::parts_of(const Part& part) {
  std::vector<Part> parts;
  std::size_t open_until = part.begin;
  for (std::size_t piece = part.begin; piece < part.end; ++piece) {
    for (const std::uint32_t buffer : begin_at_[piece]) {
      if (placed_[buffer]) continue;
      if (piece >= open_until || parts.empty()) parts.push_back({piece, piece});
      open_until = std::max<std::size_t>(open_until, timeline_.spans[buffer].end);
      parts.back().end = open_until;
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.end - a.begin < b.end - b.begin; });
  return parts;
}

// Looks at every valley: each can be decided alone, since what lives within one lives in no other.
CapacitySearch::Step CapacitySearch::next_choice(const Part& part, Choice& choice) {
  choice = {};
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  Valley lowest{0, 0, capacity_, 0};
  for (std::size_t begin = part.begin, end = 0; begin < part.end; begin = end) {
    for (end = begin + 1; end < part.end && height_[end] == height_[begin];) ++end;
    const Bytes left = begin == part.begin ? capacity_ : height_[begin - 1];
    const Bytes right = end == part.end ? capacity_ : height_[end];
    if (height_[begin] == capacity_ || std::min(left, right) < height_[begin]) continue;
    const Valley valley{begin, end, height_[begin], std::min(left, right) - height_[begin]};
    if (const Step step = look_at(valley, choice, fewest); step != Step::choose) return step;
    if (valley.height < lowest.height) lowest = valley;
  }
  if (lowest.begin == lowest.end) return Step::done;  // filled up to the capacity
  const auto sooner = [this](std::uint32_t a, std::uint32_t b) {
    return (*scores_)[a] != (*scores_)[b] ? (*scores_)[a] > (*scores_)[b] : a < b;
  };
  if (!choice.may_refuse) {
    std::sort(choice.buffers.begin(), choice.buffers.end(), sooner);
    return Step::choose;
  }
  for (std::size_t piece = lowest.begin; piece < lowest.end; ++piece) {
    for (const std::uint32_t buffer : begin_at_[piece]) {
      if (!lives_within(buffer, lowest) || least_offset_[buffer] > lowest.height) continue;
      if (choice.buffers.empty()) choice.buffers.push_back(buffer);
      if (sooner(buffer, choice.buffers.front())) choice.buffers.front() = buffer;
    }
  }
  return Step::choose;
}

bool CapacitySearch::lives_within(std::uint32_t buffer, const Valley& valley) const {
  return !placed_[buffer] && timeline_.spans[buffer].end <= valley.end;
}

// Pieces that cannot afford to be filled up to the wall must be covered here and now.
CapacitySearch::Step CapacitySearch::look_at(const Valley& valley, Choice& choice, std::size_t& fewest) {
  std::fill(covers_.begin() + static_cast<std::ptrdiff_t>(valley.begin),
            covers_.begin() + static_cast<std::ptrdiff_t>(valley.end) + 1, 0);
  bool any = false;
  bool refused_would_fit = false;
  for (std::size_t piece = valley.begin; piece < valley.end; ++piece) {
    for (const std::uint32_t buffer : begin_at_[piece]) {
      if (!lives_within(buffer, valley)) continue;
      if (least_offset_[buffer] > valley.height) {
        refused_would_fit |= buffers_[buffer].size <= valley.depth;
        continue;
      }
      any = true;
      ++covers_[piece];
      --covers_[timeline_.spans[buffer].end];
    }
  }
  if (!any) return fill(valley, refused_would_fit);
  std::int32_t covering = 0;
  std::size_t tightest = valley.end;
  for (std::size_t piece = valley.begin; piece < valley.end; ++piece) {
    covering += covers_[piece];
    if (slack_[piece] >= valley.depth) continue;
    if (covering == 0) return dead_end(piece);
    if (static_cast<std::size_t>(covering) >= fewest) continue;
    fewest = static_cast<std::size_t>(covering);
    tightest = piece;
  }
  if (tightest == valley.end) return Step::choose;
  choice.may_refuse = false;
  choice.buffers.clear();
  for (std::size_t piece = valley.begin; piece <= tightest; ++piece) {
    for (const std::uint32_t buffer : begin_at_[piece]) {
      if (!lives_within(buffer, valley) || timeline_.spans[buffer].end <= tightest) continue;
      if (least_offset_[buffer] <= valley.height) choice.buffers.push_back(buffer);
    }
  }
  if (choice.buffers.size() > 1) return Step::choose;
  place(choice.buffers.front());
  return Step::changed;
}

// A buffer that was refused and would fit below the wall could be moved down: another branch has that plan.
CapacitySearch::Step CapacitySearch::fill(const Valley& valley, bool would_fit) {
  if (would_fit) return dead_end(valley.begin);
  for (std::size_t piece = valley.begin; piece < valley.end; ++piece) {
    if (slack_[piece] < valley.depth) return dead_end(piece);
  }
  changes_.push_back({Change::Kind::fill, 0, valley.begin, valley.end, valley.height, valley.depth});
  for (std::size_t piece = valley.begin; piece < valley.end; ++piece) {
    height_[piece] += valley.depth;
    slack_[piece] -= valley.depth;
  }
  return Step::changed;
}

CapacitySearch::Step CapacitySearch::dead_end(std::size_t piece) {
  dead_ends_.push_back(piece);
  return Step::dead_end;
}

void CapacitySearch::place(std::uint32_t buffer) {
  const Timeline::Span& span = timeline_.spans[buffer];
  offsets_[buffer] = height_[span.begin];
  changes_.push_back({Change::Kind::place, buffer, span.begin, span.end, offsets_[buffer], 0});
  placed_[buffer] = true;
  for (std::size_t piece = span.begin; piece < span.end; ++piece) height_[piece] += buffers_[buffer].size;
}

void CapacitySearch::refuse(std::uint32_t buffer) {
  const Bytes here = height_[timeline_.spans[buffer].begin];
  changes_.push_back({Change::Kind::refuse, buffer, 0, 0, least_offset_[buffer], 0});
  least_offset_[buffer] = here + 1;
}

void CapacitySearch::take_back(std::size_t to) {
  while (changes_.size() > to) {
    const Change change = changes_.back();
    changes_.pop_back();
    if (change.kind == Change::Kind::refuse) {
      least_offset_[change.buffer] = change.before;
      continue;
    }
    if (change.kind == Change::Kind::place) placed_[change.buffer] = false;
    for (std::size_t piece = change.begin; piece < change.end; ++piece) {
      height_[piece] = change.before;
      slack_[piece] += change.filled;
    }
  }
}

}  // namespace vramlab
