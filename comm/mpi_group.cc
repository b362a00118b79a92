#include "comm/mpi_group.h"

#include <utility>

#include "comm/mpi_link.h"
#include "core/check.h"

namespace slimgrad {
namespace {

std::size_t Rounded(std::size_t bytes) {
  return (bytes + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
}

}  // namespace

Result<std::unique_ptr<MpiGroup>> MpiGroup::Create(MPI_Comm communicator,
                                                   std::chrono::milliseconds timeout,
                                                   const MpiOptions& options) {
  if (options.backend.device != Device::kCpu)
    return Unsupported("a group over MPI: backend: expected the host's, found a device's");
  SLIMGRAD_ASSIGN_OR_RETURN(auto link, MpiLink::Open(communicator, timeout, options.piece_bytes));
  return std::unique_ptr<MpiGroup>(new MpiGroup(std::move(link), options.backend));
}

MpiGroup::MpiGroup(std::unique_ptr<MpiLink> link, Backend backend)
    : link_(std::move(link)), backend_(backend), rank_(link_->rank()) {
  places_.resize(static_cast<std::size_t>(link_->size()));
  messages_.resize(places_.size());
}

MpiGroup::~MpiGroup() { MpiLink::Close(std::move(link_)); }

bool MpiGroup::HoldsMemory() { return link_->HoldsMemory(); }

int MpiGroup::size() const { return link_->size(); }

Result<std::span<const Bytes>> MpiGroup::AllGather(std::span<const Bytes> mine,
                                                   TrafficRow& traffic) {
  SLIMGRAD_CHECK(mine.size() == 1);
  SLIMGRAD_RETURN_IF_ERROR(link_->Meet({.bytes = mine[0].size()}));
  SLIMGRAD_RETURN_IF_ERROR(
      LayOut([this](int rank) { return static_cast<std::size_t>(link_->call(rank).bytes); }));
  messages_.assign(places_.begin(), places_.end());
  messages_[Index(rank_)] = mine[0];
  for (int step = 1; step < size(); ++step) {
    const int from = Before(step), to = After(step);
    SLIMGRAD_RETURN_IF_ERROR(Receive(from, places_[Index(from)], traffic));
    SLIMGRAD_RETURN_IF_ERROR(Send(to, mine[0], traffic));
  }
  SLIMGRAD_RETURN_IF_ERROR(link_->Finish());
  return std::span<const Bytes>(messages_);
}

Status MpiGroup::AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                            std::span<std::byte> result, TrafficRow& traffic) {
  SLIMGRAD_CHECK(mine.size() == 1 && mine[0].size() == result.size());
  SLIMGRAD_RETURN_IF_ERROR(link_->Meet({op, dtype, result.size()}));
  const std::size_t element = SizeOf(dtype);
  SLIMGRAD_RETURN_IF_ERROR(GatherParts(mine[0], element, traffic));
  const std::span<std::byte> own = PartOf(result, element, rank_);
  kernels::Combine(backend_, op, dtype, messages_, own);
  return ShareChunks(result, element, traffic);
}

// messages_[r] = rank r's values of the chunk that this rank owns.
Status MpiGroup::GatherParts(Bytes values, std::size_t element, TrafficRow& traffic) {
  const Bytes own = PartOf(values, element, rank_);
  SLIMGRAD_RETURN_IF_ERROR(LayOut([&](int) { return own.size(); }));
  messages_.assign(places_.begin(), places_.end());
  messages_[Index(rank_)] = own;
  for (int step = 1; step < size(); ++step) {
    const int from = Before(step), to = After(step);
    SLIMGRAD_RETURN_IF_ERROR(Receive(from, places_[Index(from)], traffic));
    SLIMGRAD_RETURN_IF_ERROR(Send(to, PartOf(values, element, to), traffic));
  }
  return link_->Finish();
}

// Fills in the chunks that others own.
Status MpiGroup::ShareChunks(std::span<std::byte> result, std::size_t element,
                             TrafficRow& traffic) {
  for (int step = 1; step < size(); ++step) {
    const int from = Before(step), to = After(step);
    SLIMGRAD_RETURN_IF_ERROR(Receive(from, PartOf(result, element, from), traffic));
    SLIMGRAD_RETURN_IF_ERROR(Send(to, PartOf(result, element, rank_), traffic));
  }
  return link_->Finish();
}

// places_[r] = memory of bytes_of(r) bytes, for every other rank r.
template <class BytesOf>
Status MpiGroup::LayOut(const BytesOf& bytes_of) {
  std::size_t total = 0;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != rank_) total += Rounded(bytes_of(rank));
  SLIMGRAD_ASSIGN_OR_RETURN(const std::span<std::byte> room, link_->Room(total));
  std::size_t at = 0;
  for (int rank = 0; rank < size(); ++rank) {
    places_[Index(rank)] = {};
    if (rank == rank_) continue;
    places_[Index(rank)] = room.subspan(at, bytes_of(rank));
    at += Rounded(bytes_of(rank));
  }
  return {};
}

Status MpiGroup::Send(int to, Bytes message, TrafficRow& traffic) {
  traffic.sent[Index(rank_)] += message.size();
  return link_->Send(to, message);
}

Status MpiGroup::Receive(int from, std::span<std::byte> message, TrafficRow& traffic) {
  traffic.received[Index(rank_)] += message.size();
  return link_->Receive(from, message);
}

template <class Byte>
std::span<Byte> MpiGroup::PartOf(std::span<Byte> values, std::size_t element, int rank) const {
  const Chunk chunk = ChunkOf(values.size() / element, size(), rank);
  return values.subspan(chunk.begin * element, chunk.size() * element);
}

}  // namespace slimgrad
