// A policy that another program answers for, through one C function (capi/vramlab.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/description.hpp"
#include "policies/contract/admitter.hpp"

namespace vramlab {

/// The caller's function, and which policy it is asked for.
struct Callback {
  vramlab_policy_call call;
  void* context;
  std::string policy;
};

/// One policy that was made; the caller hears when it goes.
class Instance {
 public:
  /// Throws InputError where the caller refuses the options, PolicyFault where it fails.
  Instance(Callback callback, Json question);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  /// What "make" answered.
  [[nodiscard]] const Json& made() const { return made_; }

  /// Whether it said that it has this method.
  [[nodiscard]] bool has(const char* method) const;

  /// The answer to `question`. An answer that cannot be read is a PolicyFault.
  Json ask(const char* what, Json question) const;

 private:
  Callback callback_;
  std::uint64_t number_ = 0;
  Json made_;
};

/// {NAME: value}, as "make" has them.
Json options_json(const OptionMap& options);

/// What the caller says of it; nothing where it has no such method. Throws PolicyFault.
std::vector<Statistic> statistics_of(const Instance& instance);

/// Admits jobs to cards. What an answer leaves out is as the job asked for it.
class CallbackAdmitter final : public Admitter {
 public:
  /// Throws InputError for rules that there are not, and as Instance does.
  CallbackAdmitter(const Callback& callback, const OptionMap& options);

  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& observation) override;
  [[nodiscard]] QueueRules rules() const override { return rules_; }
  /// What is left beside the larger of promise and use of each job, and strangers.
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override;
  [[nodiscard]] std::vector<Statistic> statistics() const override { return statistics_of(instance_); }

 private:
  Instance instance_;
  QueueRules rules_;
};

}  // namespace vramlab
