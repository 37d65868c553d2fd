#include "plan/skyline.hpp"

#include <algorithm>

namespace vramlab {

Skyline::Skyline(const std::vector<Buffer>& buffers, const Timeline& timeline)
    : buffers_(buffers), timeline_(timeline), begin_at_(timeline.load.size() + 1), item_(buffers.size()) {
  for (const Timeline::Span& span : timeline.spans) ++begin_at_[span.begin + 1];
  for (std::size_t piece = 1; piece < begin_at_.size(); ++piece) begin_at_[piece] += begin_at_[piece - 1];
}

// Within the tree, buffers are sorted by their begin and then by the order, so that a whole group of equal
// lifetimes is settled by its first.
void Skyline::reset(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> next(begin_at_.begin(), begin_at_.end());
  std::vector<RankTree::Item> items(buffers_.size());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) {
    const std::uint32_t buffer = order[rank];
    const Timeline::Span& span = timeline_.spans[buffer];
    item_[buffer] = next[span.begin]++;
    if (buffers_[buffer].size > 0) items[item_[buffer]] = {rank, span.end};
  }
  unplaced_.assign(items);
  need_.assign(timeline_.load);
  plateaus_.assign(1, {0, static_cast<std::uint32_t>(timeline_.load.size()), 0, kNone, kNone});
}

SkylinePass Skyline::pack(const std::vector<std::uint32_t>& order, Bytes bound, std::vector<Bytes>& offsets) {
  SkylinePass pass;
  offsets.assign(buffers_.size(), 0);
  const auto to_place = static_cast<std::size_t>(
      std::ranges::count_if(buffers_, [](const Buffer& buffer) { return buffer.size > 0; }));
  reset(order);
  std::uint32_t at = 0;
  while (pass.placed < to_place) {
    if (const std::size_t piece = need_.reaching(bound); piece < timeline_.load.size()) {
      pass.trouble = piece;
      return pass;
    }
    at = valley_near(at);
    const Plateau& valley = plateaus_[at];
    const std::uint32_t rank = unplaced_.least(begin_at_[valley.begin], begin_at_[valley.end], valley.end);
    if (rank == RankTree::kNone) {
      at = fill(at);
      continue;
    }
    const std::uint32_t buffer = order[rank];
    offsets[buffer] = valley.height;
    ++pass.placed;
    unplaced_.remove(item_[buffer]);
    at = put(at, buffer);
  }
  return pass;
}

Bytes Skyline::height_of(std::uint32_t plateau) const {
  return plateau == kNone ? std::numeric_limits<Bytes>::max() : plateaus_[plateau].height;
}

// Downhill. Which valley comes first does not matter: what lives within one lives in no other.
std::uint32_t Skyline::valley_near(std::uint32_t plateau) const {
  for (;;) {
    const Plateau& here = plateaus_[plateau];
    const bool left = height_of(here.left) < here.height;
    if (!left && height_of(here.right) >= here.height) return plateau;
    plateau = left ? here.left : here.right;
  }
}

std::uint32_t Skyline::add_behind(std::uint32_t left, const Plateau& plateau) {
  const auto added = static_cast<std::uint32_t>(plateaus_.size());
  plateaus_.push_back(plateau);
  plateaus_[added].left = left;
  plateaus_[added].right = plateaus_[left].right;
  if (plateaus_[left].right != kNone) plateaus_[plateaus_[left].right].left = added;
  plateaus_[left].right = added;
  return added;
}

// Neighbours of equal height are one plateau.
std::uint32_t Skyline::join(std::uint32_t plateau) {
  const auto take_in_right = [this](std::uint32_t left) {
    Plateau& here = plateaus_[left];
    here.end = plateaus_[here.right].end;
    here.right = plateaus_[here.right].right;
    if (here.right != kNone) plateaus_[here.right].left = left;
  };
  const Plateau& here = plateaus_[plateau];
  if (height_of(here.right) == here.height) take_in_right(plateau);
  if (height_of(here.left) != here.height) return plateau;
  const std::uint32_t left = here.left;
  take_in_right(left);
  return left;
}

std::uint32_t Skyline::put(std::uint32_t valley, std::uint32_t buffer) {
  const Timeline::Span span = timeline_.spans[buffer];
  const Plateau ground = plateaus_[valley];
  need_.settle(span.begin, span.end, buffers_[buffer].size);
  std::uint32_t top = valley;
  if (ground.begin < span.begin) {
    plateaus_[valley].end = span.begin;
    top = add_behind(valley, {span.begin, span.end, 0, kNone, kNone});
  }
  plateaus_[top].end = span.end;
  plateaus_[top].height = ground.height + buffers_[buffer].size;
  if (span.end < ground.end) add_behind(top, {span.end, ground.end, ground.height, kNone, kNone});
  return join(top);
}

std::uint32_t Skyline::fill(std::uint32_t valley) {
  Plateau& ground = plateaus_[valley];
  const Bytes height = std::min(height_of(ground.left), height_of(ground.right));
  need_.waste(ground.begin, ground.end, height - ground.height);
  ground.height = height;
  return join(valley);
}

}  // namespace vramlab
