// What every allocator promises, whatever its rules. A new allocator enters with a factory and one line.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// An allocator on a device of 1 GiB, with whatever it stands on.
struct AllocatorUnderTest {
  std::shared_ptr<void> ground;  ///< kept alive
  std::shared_ptr<Allocator> allocator;
};

struct ContractParameter {
  const char* name;
  std::function<AllocatorUnderTest()> make;
};

class AllocatorContract : public testing::TestWithParam<ContractParameter> {
 protected:
  AllocatorUnderTest made = GetParam().make();
  Allocator& allocator = *made.allocator;
};

}  // namespace vramlab
