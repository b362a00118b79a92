// One rank a process, over MPI: any library of MPI 3 (tried: Open MPI).
//
//   MPI_Init(&argc, &argv);  // by the caller; MPI_THREAD_SINGLE is enough
//   SLIMGRAD_ASSIGN_OR_RETURN(auto group,
//                             MpiGroup::Create(MPI_COMM_WORLD, std::chrono::seconds(60)));
//
// Ranks are those of the communicator; a group of some of the processes is one over a communicator
// of theirs (MPI_Comm_split). Messages lie in the host's memory. All bytes travel point to point
// and the owner of a chunk combines it in rank order, so that results have the bits and traffic of
// the other groups; MPI adds nothing.
//
// A wait polls, for a millisecond by giving up the processor, then ten thousand times a second. It
// reads a clock for the timeout. In steady state a call takes nothing from the heap itself.
//
// Lost ranks. A call fails with kPeerLost and names the ranks that left the group, or that were
// awaited and silent for `timeout`. Ranks that wait are not silent; one that computes is, so the
// timeout has to be longer than what a rank does between two calls, and than its part of combining.
// A rank whose process has died is found by its silence alone. Ranks in different calls, or with
// different sizes or types, all get kMismatch. Whoever finds an error tells the others, and every
// later call of every rank fails with the same error.
//
// After an error, receives that nothing has reached are cancelled. What MPI does not give back is
// left open, its memory leaked where it is the group's; HoldsMemory says whether the caller's is
// among it (Exchange sees to that). MPI_Finalize may wait for processes that have died: a program
// that has lost one leaves by MPI_Abort or _Exit.
//
// Threads: one at a time on an object, and within what MPI_Init_thread granted.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/group.h"
#include "core/status.h"
#include "kernels/backend.h"

namespace slimgrad {

class MpiLink;

struct MpiOptions {
  Backend backend = {};  // combines; the host's
  // Longer messages travel in pieces, of at most INT_MAX bytes, which is what MPI can count.
  std::size_t piece_bytes = std::size_t{64} << 20;
};

class MpiGroup final : public Group {
 public:
  // Collective: every process of `communicator` calls it, in the order of its other collectives.
  // The communicator is borrowed for this call alone: the group works on a copy, whose errors come
  // back as kPeerLost. (Those of making the copy go to the communicator's own handler.) Refuses
  // what is no intracommunicator, a backend of a device, pieces out of range, and MPI that is not
  // running. kPeerLost if not every process comes within `timeout`; which ones is not known then.
  static Result<std::unique_ptr<MpiGroup>> Create(MPI_Comm communicator,
                                                  std::chrono::milliseconds timeout,
                                                  const MpiOptions& options = {});

  // Leaves the group, before MPI_Finalize. Gives the others a second, or less if `timeout` is, to
  // leave too; the copy of the communicator is given back if they do and nothing had failed.
  ~MpiGroup() override;

  int size() const override;
  std::span<const int> local_ranks() const override { return {&rank_, 1}; }
  Result<std::span<const Bytes>> AllGather(std::span<const Bytes> mine,
                                           TrafficRow& traffic) override;
  Status AllCombine(kernels::CombineOp op, DType dtype, std::span<const Bytes> mine,
                    std::span<std::byte> result, TrafficRow& traffic) override;
  bool HoldsMemory() override;

 private:
  MpiGroup(std::unique_ptr<MpiLink> link, Backend backend);
  Status GatherParts(Bytes values, std::size_t element, TrafficRow& traffic);
  Status ShareChunks(std::span<std::byte> result, std::size_t element, TrafficRow& traffic);
  template <class BytesOf>
  Status LayOut(const BytesOf& bytes_of);
  Status Send(int to, Bytes message, TrafficRow& traffic);
  Status Receive(int from, std::span<std::byte> message, TrafficRow& traffic);
  template <class Byte>
  std::span<Byte> PartOf(std::span<Byte> values, std::size_t element, int rank) const;
  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }
  // The ranks that are `step` away, so that not all send to one rank at a time.
  int After(int step) const { return (rank_ + step) % size(); }
  int Before(int step) const { return (rank_ + size() - step) % size(); }

  std::unique_ptr<MpiLink> link_;
  Backend backend_;
  int rank_;
  std::vector<std::span<std::byte>> places_;  // [rank], where bytes arrive
  std::vector<Bytes> messages_;               // [rank]
};

}  // namespace slimgrad
