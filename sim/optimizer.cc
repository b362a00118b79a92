#include "sim/optimizer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "kernels/backend.h"
#include "kernels/sums.h"

namespace slimgrad::sim {
namespace {

using Kind = OptimizerConfig::Kind;

// Errors show the number as the user may have written it.
std::string Text(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

Status Check(bool holds, std::string_view field, std::string_view expected, double found) {
  if (holds) return {};
  return InvalidArgument(std::string(field) + ": expected " + std::string(expected) + ", found " +
                         Text(found));
}

Status CheckSgd(const OptimizerConfig& c) {
  SLIMGRAD_RETURN_IF_ERROR(
      Check(c.momentum >= 0 && c.momentum < 1, "momentum", "0 <= momentum < 1", c.momentum));
  SLIMGRAD_RETURN_IF_ERROR(
      Check(c.dampening >= 0 && c.dampening <= 1, "dampening", "0 <= dampening <= 1", c.dampening));
  if (c.nesterov) {
    SLIMGRAD_RETURN_IF_ERROR(Check(c.momentum > 0, "momentum", "> 0 with nesterov", c.momentum));
    SLIMGRAD_RETURN_IF_ERROR(Check(c.dampening == 0, "dampening", "0 with nesterov", c.dampening));
  }
  SLIMGRAD_RETURN_IF_ERROR(Check(c.beta1 == 0, "beta1", "0 for sgd", c.beta1));
  SLIMGRAD_RETURN_IF_ERROR(Check(c.beta2 == 0, "beta2", "0 for sgd", c.beta2));
  return Check(c.eps == 0, "eps", "0 for sgd", c.eps);
}

Status CheckAdam(const OptimizerConfig& c) {
  SLIMGRAD_RETURN_IF_ERROR(Check(c.beta1 >= 0 && c.beta1 < 1, "beta1", "0 <= beta1 < 1", c.beta1));
  SLIMGRAD_RETURN_IF_ERROR(Check(c.beta2 >= 0 && c.beta2 < 1, "beta2", "0 <= beta2 < 1", c.beta2));
  SLIMGRAD_RETURN_IF_ERROR(Check(c.eps > 0 && std::isfinite(c.eps), "eps", "a number > 0", c.eps));
  const std::string kind(NameOf(c.kind));
  SLIMGRAD_RETURN_IF_ERROR(Check(c.momentum == 0, "momentum", "0 for " + kind, c.momentum));
  SLIMGRAD_RETURN_IF_ERROR(Check(c.dampening == 0, "dampening", "0 for " + kind, c.dampening));
  if (!c.nesterov) return {};
  return InvalidArgument("nesterov: expected false for " + kind + ", found true");
}

}  // namespace

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kSgd: return "sgd";
    case Kind::kAdam: return "adam";
    case Kind::kAdamW: return "adamw";
  }
  return "?";
}

Status Validate(const OptimizerConfig& c) {
  SLIMGRAD_RETURN_IF_ERROR(Check(c.weight_decay >= 0 && std::isfinite(c.weight_decay),
                                 "weight_decay", "a number >= 0", c.weight_decay));
  const double clip = c.clip_global_norm.value_or(1);
  SLIMGRAD_RETURN_IF_ERROR(
      Check(clip > 0 && std::isfinite(clip), "clip_global_norm", "a number > 0", clip));
  return c.kind == Kind::kSgd ? CheckSgd(c) : CheckAdam(c);
}

Optimizer::Optimizer(const OptimizerConfig& config, std::span<const TensorSpec> tensors)
    : config_(config) {
  SLIMGRAD_CHECK(Validate(config).ok());
  const bool adam = config.kind != Kind::kSgd;
  for (const TensorSpec& tensor : tensors) {
    const std::size_t n = tensor.numel();
    sizes_.push_back(n);
    momentum_.emplace_back(adam || config.momentum > 0 ? n : 0);
    variance_.emplace_back(adam ? n : 0);
  }
}

void Optimizer::Step(double learning_rate, std::span<const In> averaged_gradients,
                     std::span<const Out> weights) {
  SLIMGRAD_CHECK(averaged_gradients.size() == sizes_.size() && weights.size() == sizes_.size());
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    SLIMGRAD_CHECK(averaged_gradients[i].size() == sizes_[i] && weights[i].size() == sizes_[i]);
  }
  ++steps_;
  const float clip = ClipFactor(averaged_gradients);
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    if (config_.kind == Kind::kSgd) {
      StepSgd(learning_rate, clip, i, averaged_gradients[i], weights[i]);
    } else {
      StepAdam(learning_rate, clip, i, averaged_gradients[i], weights[i]);
    }
  }
}

// 1 where nothing is clipped: multiplying by it is exact, so the loops below need no second form.
float Optimizer::ClipFactor(std::span<const In> gradients) const {
  if (!config_.clip_global_norm) return 1;
  double squares = 0;
  for (const In gradient : gradients) squares += kernels::SumSquares(Backend{}, gradient);
  return static_cast<float>(std::min(1.0, *config_.clip_global_norm / (std::sqrt(squares) + 1e-6)));
}

void Optimizer::StepSgd(double learning_rate, float clip, std::size_t tensor, In gradient,
                        Out weights) {
  const auto lr = static_cast<float>(learning_rate);
  const auto decay = static_cast<float>(config_.weight_decay);
  const auto mu = static_cast<float>(config_.momentum);
  // At the first step v is all zeros, so v = mu * v + 1 * g is the rule's v = g.
  const auto fresh = static_cast<float>(steps_ == 1 ? 1.0 : 1.0 - config_.dampening);
  const bool momentum = config_.momentum > 0;
  std::vector<float>& v = momentum_[tensor];
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float g = gradient[i] * clip;
    g = g + decay * weights[i];
    if (momentum) {
      v[i] = mu * v[i] + fresh * g;
      g = config_.nesterov ? g + mu * v[i] : v[i];
    }
    weights[i] = weights[i] - lr * g;
  }
}

void Optimizer::StepAdam(double learning_rate, float clip, std::size_t tensor, In gradient,
                         Out weights) {
  const bool decoupled = config_.kind == Kind::kAdamW;
  const auto t = static_cast<double>(steps_);
  const auto decay = static_cast<float>(decoupled ? 0.0 : config_.weight_decay);
  const auto shrink =
      static_cast<float>(decoupled ? 1.0 - learning_rate * config_.weight_decay : 1.0);
  const auto beta1 = static_cast<float>(config_.beta1);
  const auto beta2 = static_cast<float>(config_.beta2);
  const auto fresh1 = static_cast<float>(1.0 - config_.beta1);
  const auto fresh2 = static_cast<float>(1.0 - config_.beta2);
  const auto step_size = static_cast<float>(learning_rate / (1.0 - std::pow(config_.beta1, t)));
  const auto correction = static_cast<float>(std::sqrt(1.0 - std::pow(config_.beta2, t)));
  const auto eps = static_cast<float>(config_.eps);
  std::vector<float>& m = momentum_[tensor];
  std::vector<float>& v = variance_[tensor];
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float g = gradient[i] * clip;
    g = g + decay * weights[i];
    weights[i] = weights[i] * shrink;
    m[i] = beta1 * m[i] + fresh1 * g;
    v[i] = beta2 * v[i] + fresh2 * (g * g);
    weights[i] = weights[i] - step_size * m[i] / (std::sqrt(v[i]) / correction + eps);
  }
}

}  // namespace slimgrad::sim
