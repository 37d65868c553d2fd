// From recorded steps to a workload model, and how well it describes them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "fit/size_laws.hpp"
#include "fit/step_record.hpp"
#include "models/ranks.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// How well the sizes of the recorded allocations are described.
struct FitResiduals {
  struct Count {
    std::size_t tensors = 0;  ///< allocations of the step, each counted once over all shapes
    Bytes bytes = 0;          ///< as requested, summed over all recorded shapes
  };
  Count all;
  std::array<Count, kKnowledges> by_knowledge;  ///< by SizeKnowledge

  /// Of allocations with a form that gives every recorded size: exact and borrowed ones.
  [[nodiscard]] Bytes bytes_with_form() const { return by_knowledge[0].bytes + by_knowledge[1].bytes; }
};

/// A family of allocations without an exact form, for people: where the model is weakest.
struct InexactFamily {
  std::vector<Bytes> sizes;  ///< by shape; 0 = not seen there
  std::size_t tensors = 0;   ///< how many have these sizes
};

/// Counts them for the allocations of `program`, whose sizes are known as `knowledge` says; `inexact` gets
/// the families without an exact form, most bytes first.
FitResiduals count_residuals(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                             const std::vector<SizeKnowledge>& knowledge,
                             std::vector<InexactFamily>& inexact);

// What a library asks for where a workspace is refused, from the recorded steps that were short of memory.

/// Puts the kernels whose workspaces were refused at a shape of the model into `spec`, and their numbers into
/// its tensors, which must be there. `union_program` and `shapes` are what `spec` was made of, without loops.
///
/// Workspaces of one kernel have equal size laws (a forward pass and a gradient that agree in these are not
/// told apart), and so has what their operation allocated before: its output. That and its first size tell
/// which kernel a row of refusals belongs to. A kept plan that is refused is asked for once before the row of
/// all attempts; it is taken off. What is granted after refusals is the last attempt.
void find_refused_workspaces(const std::vector<RecordedRun>& runs, const ChosenSteps& chosen,
                             const UnionProgram& union_program, const std::vector<ShapeProgram>& shapes,
                             RecordedSpec& spec);

// What a fitted model guesses, and what to record so that it knows.

/// Where the program changes between two recorded shapes, the place is a guess.
void warn_of_thresholds(const RecordedSpec& spec, std::vector<std::string>& warnings);

/// Sizes without a form follow the algorithms of a library, which change with the shape.
void warn_of_workspaces(const RecordedSpec& spec, const FitResiduals& residuals,
                        std::vector<std::string>& warnings);

// From recorded steps to a workload model.

struct FittedModel {
  RecordedSpec spec;
  std::vector<std::string> shape_labels;
  FitResiduals residuals;
  std::vector<InexactFamily> inexact;  ///< most bytes first
  std::vector<std::string> warnings;   ///< what not to trust, and what to record
  std::size_t refusal_chains = 0;      ///< recorded chains of refusals; without any their length is assumed
};

/// Fits a model to the steps of all `runs`; the first gives building and the first step of a process. `card`:
/// bytes of the card that was recorded, where no mark says; 0 = not known.
/// Throws InputError if they are not steps of one program, or there is no settled step.
FittedModel fit_model(const std::vector<RecordedRun>& runs, const std::string& name, Bytes card = 0);

// From the models of several ranks to one with the number of ranks as a parameter.

/// Gives the ranks of the largest recorded number what their sizes were with the next smaller one, from the
/// rank of the same number there, or the nearest below. Steps are aligned: an allocation belongs to one of
/// the same size (score 30), of as large a part of what all ranks have together (20), or as many times larger
/// as there are more ranks (15); to a hundredth, for shares are padded.
///
/// What is made by more ranks alone is a collective if a neighbour has as many times its size as there are
/// ranks. Of a constant size (weights) the larger one is the whole and stays, of any other (activations) the
/// smaller one does; unless the smaller one's size was found to do otherwise. All else goes as others of its
/// size, or stays, with a warning. Throws InputError if places or parameters contradict each other.
RankModels join_ranks(std::vector<RankModel> models, std::vector<std::string>& warnings);

}  // namespace vramlab
