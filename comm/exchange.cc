#include "comm/exchange.h"

#include <algorithm>
#include <new>
#include <set>

#include <fmt/format.h>

#include "comm/peers.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"

namespace slimgrad {
namespace {

constexpr std::uint64_t kAllFinite = ~std::uint64_t{0};

template <class V>
Status CheckView(const V& view, const TensorSpec& tensor, Device device, std::string_view what) {
  const auto error = [&](std::string_view field, auto expected, auto found) {
    return InvalidArgument(fmt::format("{} of tensor '{}': {}: expected {}, found {}", what,
                                       tensor.name, field, expected, found));
  };
  if (view.dtype != tensor.dtype) return error("dtype", NameOf(tensor.dtype), NameOf(view.dtype));
  if (view.numel != tensor.numel()) return error("elements", tensor.numel(), view.numel);
  if (view.device != device) return error("memory", NameOf(device), NameOf(view.device));
  return {};
}

std::size_t RoundBytes(const Round& round) {
  return round.kind == Round::Kind::kGather ? round.bound
                                            : SectionBytes(round.count * SizeOf(round.dtype));
}

}  // namespace

Exchange::Exchange(Group& group, Compressor compressor, std::vector<TensorSpec> tensors,
                   ExchangeOptions options)
    : group_(group),
      compressor_(std::move(compressor)),
      tensors_(std::move(tensors)),
      options_(std::move(options)),
      spec_hash_(compressor_.spec_hash()),
      scratch_(*options_.backend.memory),
      report_(group.size()) {}

Result<std::unique_ptr<Exchange>> Exchange::Create(Group& group, Compressor compressor,
                                                   std::vector<TensorSpec> tensors,
                                                   ExchangeOptions options) {
  std::unique_ptr<Exchange> exchange(
      new Exchange(group, std::move(compressor), std::move(tensors), std::move(options)));
  SLIMGRAD_RETURN_IF_ERROR(exchange->SetUp());
  return exchange;
}

Exchange::~Exchange() {
  if (!group_.HoldsMemory()) return;
  for (Local& local : locals_) Abandon(std::move(local.frame));
  Abandon(std::move(combined_));
  Abandon(std::move(flags_));
}

Status Exchange::SetUp() {
  if (!group_.TakesMessagesOn(options_.backend))
    return Unsupported(fmt::format(
        "backend: expected one whose memory and stream the group works on, found a {}'s",
        NameOf(options_.backend.device)));
  if (compressor_.spec().empty())
    return InvalidArgument("compressor: expected a spec, as MakeCompressor sets it, found none");
  std::set<std::string_view> names;
  for (const TensorSpec& tensor : tensors_) {
    SLIMGRAD_RETURN_IF_ERROR(Validate(tensor));
    if (!names.insert(tensor.name).second)
      return InvalidArgument(
          fmt::format("tensors: expected each name once, found '{}' twice", tensor.name));
  }
  SLIMGRAD_RETURN_IF_ERROR(
      ComparePeers(group_, {.spec = spec_hash_,
                            .tensors = HashOf(tensors_),
                            .seed = options_.seed,
                            .nonfinite = static_cast<std::uint64_t>(options_.nonfinite)}));
  for (const TensorSpec& tensor : tensors_) {
    SLIMGRAD_ASSIGN_OR_RETURN(Plan plan, compressor_.MakePlan(tensor));
    SLIMGRAD_CHECK(plan.rounds.size() > 0);
    plans_.push_back(std::move(plan));
  }
  return Settled("states and frames of all tensors", [this] {
    Allocate();
    return Status();
  });
}

// What `work` returns, once the device is done with it too, whatever went wrong: nothing is left
// there that uses the caller's memory or tells a later call of an error. Where memory could not be
// had as the device has failed, that is the error.
template <class Work>
Status Exchange::Settled(std::string_view what, const Work& work) {
  Status status;
  try {
    status = work();
  } catch (const std::bad_alloc&) {
    status = OutOfMemory(fmt::format("{}: expected room, found too little memory", what));
  }
  const Status device = kernels::Wait(options_.backend);
  return status.ok() || (status.code() == Code::kOutOfMemory && !device.ok()) ? device : status;
}

void Exchange::Allocate() {
  Memory& memory = *options_.backend.memory;
  std::size_t body = 0, combined = 0, rounds = 0, narrow = 0;
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].dtype != DType::kF32) narrow = std::max(narrow, tensors_[t].numel());
    rounds = std::max(rounds, plans_[t].rounds.size());
    for (const Round& round : plans_[t].rounds) {
      body = std::max(body, RoundBytes(round));
      if (round.kind == Round::Kind::kCombine)
        combined = std::max(combined, round.count * SizeOf(round.dtype));
    }
  }
  counters_ = Buffer<Counters>(1, memory);
  const std::span<const int> ranks = group_.local_ranks();
  locals_.resize(ranks.size());
  for (std::size_t l = 0; l < ranks.size(); ++l) {
    Local& local = locals_[l];
    local.rank = static_cast<std::uint32_t>(ranks[l]);
    local.frame = Buffer<std::byte>(kFrameHeaderBytes + body, memory);
    local.gradient = Buffer<float>(narrow, memory);
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      local.states.push_back(compressor_.Init(MakeContext(t, local)));
    wide_averages_.emplace_back(narrow, memory);
  }
  combined_ = Buffer<std::byte>(combined, memory);
  non_finite_ = Buffer<std::uint64_t>(ranks.size() * tensors_.size(), memory);
  found_.resize(ranks.size() * tensors_.size());
  flags_ = Buffer<std::uint64_t>(2 * ranks.size());
  messages_.resize(ranks.size());
  inputs_.resize(ranks.size());
  outputs_.resize(ranks.size());
  views_.resize(static_cast<std::size_t>(group_.size()));
  report_.traffic.rounds.assign(rounds, TrafficRow(group_.size()));
}

Context Exchange::MakeContext(std::size_t t, const Local& local) {
  Context context;
  context.backend = options_.backend;
  context.tensor = &tensors_[t];
  context.scratch = &scratch_;
  context.counters = counters_.data();
  context.seed = options_.seed;
  context.step = step_;
  context.rank = local.rank;
  context.world = static_cast<std::uint32_t>(group_.size());
  context.learning_rate = step_options_.learning_rate;
  context.loss_scale = step_options_.loss_scale;
  return context;
}

Status Exchange::CheckViews(std::span<const std::span<const ConstView>> gradients,
                            std::span<const std::span<const View>> averages) const {
  const auto count = [](std::string_view what, std::size_t expected, std::size_t found) {
    return InvalidArgument(fmt::format("{}: expected {}, found {}", what, expected, found));
  };
  if (gradients.size() != locals_.size())
    return count("rows of gradients", locals_.size(), gradients.size());
  if (averages.size() != 1 && averages.size() != locals_.size())
    return count("rows of averages", locals_.size(), averages.size());
  for (const auto& row : gradients) {
    if (row.size() != tensors_.size()) return count("gradients", tensors_.size(), row.size());
    for (std::size_t t = 0; t < row.size(); ++t)
      SLIMGRAD_RETURN_IF_ERROR(CheckView(row[t], tensors_[t], options_.backend.device, "gradient"));
  }
  for (const auto& row : averages) {
    if (row.size() != tensors_.size()) return count("averages", tensors_.size(), row.size());
    for (std::size_t t = 0; t < row.size(); ++t)
      SLIMGRAD_RETURN_IF_ERROR(CheckView(row[t], tensors_[t], options_.backend.device, "average"));
  }
  for (const Local& local : locals_)
    if (local.restored_step != locals_[0].restored_step)
      return Mismatch(
          fmt::format("restored states: expected step {} as on rank {}, found {} on rank {}",
                      locals_[0].restored_step, locals_[0].rank, local.restored_step, local.rank));
  return {};
}

Status Exchange::Step(std::span<const std::span<const ConstView>> gradients,
                      std::span<const std::span<const View>> averages, const StepOptions& options) {
  SLIMGRAD_RETURN_IF_ERROR(CheckViews(gradients, averages));
  step_options_ = options;
  report_.Begin(step_);
  SLIMGRAD_RETURN_IF_ERROR(Settled("step", [&] { return RunStep(gradients, averages); }));
  ++step_;
  for (Local& local : locals_) local.restored_step = step_;
  return {};
}

Status Exchange::RunStep(std::span<const std::span<const ConstView>> gradients,
                         std::span<const std::span<const View>> averages) {
  // Trusted gradients are not read, but ranks may have been restored: once, they compare steps.
  const bool look = options_.nonfinite == NonFinite::kSkip;
  if (look || !agreed_) SLIMGRAD_RETURN_IF_ERROR(AgreeToGo(gradients, look));
  agreed_ = true;
  for (std::size_t t = 0; t < tensors_.size() && !report_.skipped; ++t)
    SLIMGRAD_RETURN_IF_ERROR(RunTensor(t, gradients, averages));
  Counters now;
  options_.backend.memory->Read(&now, counters_.data(), sizeof now);
  report_.saturated = now.saturated - counted_.saturated;
  counted_ = now;
  return {};
}

// Reads every gradient, and then what was found of all of them at once.
void Exchange::Look(std::span<const std::span<const ConstView>> gradients) {
  const std::size_t count = tensors_.size();
  for (std::size_t l = 0; l < locals_.size(); ++l)
    for (std::size_t t = 0; t < count; ++t)
      kernels::CountNonFinite(options_.backend, gradients[l][t],
                              non_finite_.data() + l * count + t);
  options_.backend.memory->Read(found_.data(), non_finite_.data(),
                                found_.size() * sizeof(std::uint64_t));
}

// Every rank says in which step it is and, having looked, which of its tensors is not finite.
Status Exchange::AgreeToGo(std::span<const std::span<const ConstView>> gradients, bool look) {
  if (look) Look(gradients);
  for (std::size_t l = 0; l < locals_.size(); ++l) {
    std::uint64_t bad = kAllFinite;
    for (std::size_t t = 0; look && t < tensors_.size() && bad == kAllFinite; ++t)
      if (found_[l * tensors_.size() + t] > 0) bad = t;
    const std::span<std::uint64_t> flag = flags_.span().subspan(2 * l, 2);
    flag[0] = step_;
    flag[1] = bad;
    messages_[l] = std::as_bytes(flag);
  }
  SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const Bytes> all,
                            group_.AllGather(messages_, report_.traffic.finite_check));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != 2 * sizeof(std::uint64_t))
      return Mismatch(
          fmt::format("rank {}: is in another call than rank {}", rank, locals_[0].rank));
    const auto* flag = reinterpret_cast<const std::uint64_t*>(all[rank].data());
    if (flag[0] != step_)
      return Mismatch(fmt::format("rank {}: step: expected {} as on rank {}, found {}", rank, step_,
                                  locals_[0].rank, flag[0]));
    if (flag[1] == kAllFinite || report_.skipped) continue;
    report_.skipped = true;
    report_.skip_reason = fmt::format("rank {}: gradient of tensor '{}' is not finite", rank,
                                      flag[1] < tensors_.size() ? tensors_[flag[1]].name : "?");
  }
  return {};
}

Status Exchange::RunTensor(std::size_t t, std::span<const std::span<const ConstView>> gradients,
                           std::span<const std::span<const View>> averages) {
  const TensorSpec& tensor = tensors_[t];
  const std::size_t n = tensor.numel();
  const bool narrow = tensor.dtype != DType::kF32;
  for (std::size_t l = 0; l < locals_.size(); ++l) {
    if (narrow) kernels::Widen(options_.backend, gradients[l][t], locals_[l].gradient.first(n));
    inputs_[l] = narrow ? In(locals_[l].gradient.first(n)) : gradients[l][t].As<float>();
    outputs_[l] = l >= averages.size() ? Out()
                  : narrow             ? wide_averages_[l].first(n)
                                       : averages[l][t].As<float>();
  }
  for (std::size_t r = 0; r < plans_[t].rounds.size(); ++r) {
    const Status status = RunRound(t, r);
    if (!status.ok()) return status.In(fmt::format("tensor '{}', round {}", tensor.name, r));
  }
  if (narrow)
    for (std::size_t l = 0; l < averages.size(); ++l)
      kernels::Narrow(options_.backend, outputs_[l], averages[l][t], kernels::Overflow::kSaturate,
                      &counters_.data()->saturated);
  return {};
}

Status Exchange::RunRound(std::size_t t, std::size_t r) {
  const bool gather = plans_[t].rounds[r].kind == Round::Kind::kGather;
  const std::uint64_t start = Now();
  for (std::size_t l = 0; l < locals_.size(); ++l) Send(t, r, locals_[l], inputs_[l]);
  report_.encode_ns += Now() - start;
  SLIMGRAD_RETURN_IF_ERROR(gather ? Gather(t, r) : Combine(t, r));
  const std::size_t payloads = gather ? views_.size() : 1;
  for (std::size_t l = 0; l < locals_.size(); ++l) {
    const Inbox inbox = {std::span(views_).first(payloads), locals_[l].own.payload};
    const std::uint64_t begin = Now();
    SLIMGRAD_RETURN_IF_ERROR(compressor_.Receive(static_cast<int>(r), inbox, locals_[l].states[t],
                                                 MakeContext(t, locals_[l]), outputs_[l]));
    if (l == 0) report_.decode_ns += Now() - begin;
  }
  return {};
}

void Exchange::Send(std::size_t t, std::size_t r, Local& local, In x) {
  const Round& round = plans_[t].rounds[r];
  Payload payload(FrameBody(local.frame.span()), options_.backend.device);
  compressor_.Send(static_cast<int>(r), x, local.states[t], MakeContext(t, local), payload);
  local.own.payload = payload.view();
  if (round.kind == Round::Kind::kGather) {
    SLIMGRAD_CHECK(payload.body().size() <= round.bound);
    local.message = local.own.frame =
        SealFrameOn(options_.backend, local.frame.span(), payload, InfoOf(t, r));
  } else {
    const std::span<const Section> sections = local.own.payload.sections();
    SLIMGRAD_CHECK(sections.size() == 1 && sections[0].type.dtype == round.dtype &&
                   sections[0].count() == round.count);
    local.message = sections[0].bytes;
  }
  report_.payload_bytes += local.message.size();
}

FrameInfo Exchange::InfoOf(std::size_t t, std::size_t r) const {
  return {spec_hash_, tensors_[t].numel(), step_, static_cast<std::uint8_t>(r)};
}

Status Exchange::Gather(std::size_t t, std::size_t r) {
  for (std::size_t l = 0; l < locals_.size(); ++l) messages_[l] = locals_[l].message;
  SLIMGRAD_ASSIGN_OR_RETURN(const std::span<const Bytes> all,
                            group_.AllGather(messages_, report_.traffic.rounds[r]));
  const std::uint64_t start = Now();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Result<PayloadView> view = OpenFrameOn(options_.backend, all[rank], InfoOf(t, r),
                                           locals_[0].own, plans_[t].traits.fixed_size);
    if (!view.ok()) return view.status().In(fmt::format("rank {}", rank));
    views_[rank] = *view;
  }
  report_.decode_ns += Now() - start;
  return {};
}

Status Exchange::Combine(std::size_t t, std::size_t r) {
  const Round& round = plans_[t].rounds[r];
  for (std::size_t l = 0; l < locals_.size(); ++l) messages_[l] = locals_[l].message;
  const std::span<std::byte> result = combined_.first(round.count * SizeOf(round.dtype));
  SLIMGRAD_RETURN_IF_ERROR(
      group_.AllCombine(round.op, round.dtype, messages_, result, report_.traffic.rounds[r]));
  views_[0] = PayloadView::Single(locals_[0].own.payload.sections()[0].type, result);
  return {};
}

Result<std::vector<std::byte>> Exchange::SaveState(std::size_t l) {
  std::vector<std::byte> file;
  SLIMGRAD_RETURN_IF_ERROR(Settled("state", [&]() -> Status {
    SLIMGRAD_ASSIGN_OR_RETURN(file, SerializeState(HeaderOf(l), TensorStatesOf(l)));
    return {};
  }));
  return file;
}

Status Exchange::RestoreState(std::size_t l, std::span<const std::byte> file) {
  StateHeader header;
  SLIMGRAD_RETURN_IF_ERROR(Settled("state", [&]() -> Status {
    SLIMGRAD_ASSIGN_OR_RETURN(header,
                              DeserializeState(file, "state", HeaderOf(l), TensorStatesOf(l)));
    return {};
  }));
  step_ = locals_[l].restored_step = header.step;
  agreed_ = false;
  return {};
}

StateHeader Exchange::HeaderOf(std::size_t l) const {
  return {compressor_.spec(), locals_[l].rank, static_cast<std::uint64_t>(group_.size()), step_,
          options_.seed};
}

std::vector<TensorState> Exchange::TensorStatesOf(std::size_t l) {
  std::vector<TensorState> states;
  for (std::size_t t = 0; t < tensors_.size(); ++t)
    states.push_back({&tensors_[t], &locals_[l].states[t]});
  return states;
}

}  // namespace slimgrad
