#include "policies/job_demand.hpp"

#include <algorithm>

namespace vramlab {

Bytes JobDemand::need(std::int64_t with_batch, Bytes card_total) const {
  if (share_milli > 0) {
    const auto milli = static_cast<Bytes>(share_milli);
    return card_total / 1000 * milli + card_total % 1000 * milli / 1000;  // down: two halves fit a card
  }
  return fixed + per_sample * static_cast<Bytes>(std::max(with_batch, least_batch));
}

BatchSplit exact_split(std::int64_t original, std::int64_t batch) {
  std::int64_t divisor = std::clamp<std::int64_t>(batch, 1, original);
  while (original % divisor != 0) --divisor;
  return {divisor, original / divisor};
}

BatchSplit halved_split(std::int64_t original, std::int64_t batch) { return {batch, original / batch}; }

std::int64_t halve_until_fits(const JobDemand& demand, Bytes available, Bytes card_total) {
  std::int64_t batch = demand.batch;
  while (batch > 1 && demand.need(batch, card_total) > available) batch /= 2;
  return demand.need(batch, card_total) <= available ? batch : 0;
}

}  // namespace vramlab
