#include "sim/gradient_source.h"

#include "kernels/convert.h"

namespace slimgrad::sim {
namespace {

class Recorded final : public GradientSource {
 public:
  Recorded(const Trace& trace, const Backend& backend) : trace_(trace), backend_(backend) {
    const auto workers = static_cast<std::size_t>(trace.schema().world_size);
    files_.resize(workers);
    gradients_.resize(workers);
    if (trace.schema().gradient_dtype == DType::kF32) return;
    for (std::size_t w = 0; w < workers; ++w) wide_.emplace_back(trace.tensors());
  }

  Status Load(std::int64_t step, std::span<const In>) override {
    for (std::size_t w = 0; w < files_.size(); ++w) {
      SLIMGRAD_ASSIGN_OR_RETURN(files_[w], trace_.Gradients(step, static_cast<std::int64_t>(w)));
      const std::span<const ConstView> recorded = files_[w].tensors();
      if (wide_.empty()) {
        gradients_[w] = recorded;
        continue;
      }
      for (std::size_t t = 0; t < recorded.size(); ++t)
        kernels::Widen(backend_, recorded[t], wide_[w].outs()[t]);
      gradients_[w] = wide_[w].const_views();
    }
    return {};
  }

 private:
  const Trace& trace_;
  Backend backend_;
  std::vector<StepGradients> files_;  // keep what gradients_ points to
  std::vector<TensorSet> wide_;       // empty for an fp32 trace
};

class Computed final : public GradientSource {
 public:
  Computed(const Trace& trace, std::unique_ptr<Model> model)
      : data_(*trace.data()), order_(*trace.data()->batches), model_(std::move(model)) {
    for (std::size_t w = 0; w < order_.world_size; ++w) {
      sets_.emplace_back(trace.tensors());
      gradients_.push_back(sets_.back().const_views());
    }
    inputs_.resize(order_.batch * data_.train.features);
    labels_.resize(order_.batch);
  }

  Status Load(std::int64_t step, std::span<const In> weights) override {
    double sum = 0;
    for (std::size_t w = 0; w < sets_.size(); ++w) {
      for (std::size_t i = 0; i < order_.batch; ++i) {
        const std::size_t row = order_.Row(static_cast<std::size_t>(step), w, i);
        data_.train.CopyInputs(
            row, Out(inputs_).subspan(i * data_.train.features, data_.train.features));
        labels_[i] = static_cast<std::int32_t>(data_.train.Label(row));
      }
      sum += model_->Gradient(weights, {order_.batch, inputs_, labels_}, sets_[w].outs());
    }
    train_loss_ = sum / static_cast<double>(sets_.size());
    return {};
  }

  std::optional<double> train_loss() const override { return train_loss_; }

 private:
  const TraceData& data_;
  const BatchOrder& order_;
  std::unique_ptr<Model> model_;
  std::vector<TensorSet> sets_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
  double train_loss_ = 0;
};

}  // namespace

std::unique_ptr<GradientSource> RecordedGradients(const Trace& trace, const Backend& backend) {
  return std::make_unique<Recorded>(trace, backend);
}

Result<std::unique_ptr<GradientSource>> ModelGradients(const Trace& trace) {
  SLIMGRAD_ASSIGN_OR_RETURN(auto model, ModelOfTrace(trace));
  if (!trace.data()->batches) return Unsupported("the trace records no batches");
  if (trace.initial_weights().empty()) return Unsupported("the trace records no initial weights");
  return std::unique_ptr<GradientSource>(std::make_unique<Computed>(trace, std::move(model)));
}

Result<std::unique_ptr<Model>> ModelOfTrace(const Trace& trace) {
  const TraceSchema& schema = trace.schema();
  if (!schema.model || !schema.model->graph)
    return Unsupported("the trace has no model that can be run here");
  if (!trace.data()) return Unsupported("the trace has no data");
  std::optional<std::size_t> classes;
  if (schema.data && schema.data->classes)
    classes = static_cast<std::size_t>(*schema.data->classes);
  return MakeModel(*schema.model->graph, trace.tensors(), trace.data()->train.features, classes);
}

Result<std::unique_ptr<Evaluator>> Evaluator::Create(const Trace& trace) {
  auto evaluator = std::make_unique<Evaluator>();
  SLIMGRAD_ASSIGN_OR_RETURN(evaluator->model_, ModelOfTrace(trace));
  if (!trace.data()->eval) return Unsupported("the trace has no evaluation set");
  const LabelledRows& rows = *trace.data()->eval;
  evaluator->inputs_.resize(rows.rows * rows.features);
  evaluator->labels_.resize(rows.rows);
  for (std::size_t r = 0; r < rows.rows; ++r) {
    rows.CopyInputs(r, Out(evaluator->inputs_).subspan(r * rows.features, rows.features));
    evaluator->labels_[r] = static_cast<std::int32_t>(rows.Label(r));
  }
  return evaluator;
}

Evaluation Evaluator::Evaluate(std::span<const In> weights) {
  return model_->Evaluate(weights, {labels_.size(), inputs_, labels_});
}

}  // namespace slimgrad::sim
