// What a failing CUDA call says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/card.hpp"

namespace vramlab {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string message_of(cudaError_t error) {
  try {
    VRAMLAB_CUDA_RESULT(error, "cudaMalloc(&memory, 512)");
  } catch (const InputError& thrown) {
    return thrown.what();
  }
  return "";
}

TEST(CheckCuda, NamesFileCallErrorAndWhatToDo) {
  const std::string line = std::to_string(__LINE__ - 8);
  EXPECT_THAT(message_of(cudaErrorNoDevice),
              AllOf(StartsWith("cuda/check_test.cpp:" + line + ": cudaMalloc(&memory, 512) failed: "),
                    HasSubstr("cudaErrorNoDevice"), HasSubstr("no CUDA-capable device"),
                    EndsWith("leave --device out to simulate.")));
}

TEST(CheckCuda, AdvisesByKindOfFailure) {
  EXPECT_THAT(message_of(cudaErrorMemoryAllocation), HasSubstr("nvidia-smi shows who holds it"));
  EXPECT_THAT(message_of(cudaErrorInsufficientDriver), HasSubstr("install a newer driver"));
  EXPECT_THAT(message_of(cudaErrorIllegalAddress), HasSubstr("compute-sanitizer"));
  EXPECT_THAT(message_of(cudaErrorDevicesUnavailable), HasSubstr("compute mode"));
}

TEST(CheckCuda, LetsSuccessPass) { EXPECT_EQ(message_of(cudaSuccess), ""); }

}  // namespace
}  // namespace vramlab
