// Graphs that are built by hand, node by node.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "tools/ptxrun/runtime/graph.h"
#include "tools/ptxrun/runtime/handles.h"
#include "tools/ptxrun/runtime/launch.h"
#include "tools/ptxrun/runtime/memory.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

cudaError_t AddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                    std::size_t dependency_count, cudaGraphNodeType type, Work work) {
  std::vector<int> ids;
  for (std::size_t i = 0; i < dependency_count; ++i) ids.push_back(FromHandle(dependencies[i])->id);
  Graph& to = *FromHandle(graph);
  const int id = to.Add(type, std::move(work), std::move(ids));
  *node = ToHandle(to.nodes[static_cast<std::size_t>(id)].get());
  return cudaSuccess;
}

cudaError_t Memset(const cudaMemsetParams& parameters) {
  const std::size_t width_bytes = parameters.width * parameters.elementSize;
  const std::size_t bytes = parameters.pitch * (parameters.height - 1) + width_bytes;
  if (!IsInside(parameters.dst, bytes, Place::kDevice)) return cudaErrorInvalidValue;
  auto* row = static_cast<std::uint8_t*>(parameters.dst);
  for (std::size_t y = 0; y < parameters.height; ++y, row += parameters.pitch) {
    for (std::size_t x = 0; x < parameters.width; ++x)
      std::memcpy(row + x * parameters.elementSize, &parameters.value, parameters.elementSize);
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace ptxrun

using ptxrun::AddNode;
using ptxrun::Record;

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaKernelNodeParams* parameters) {
  ptxrun::Work work = ptxrun::KernelWork(*parameters);
  if (!work) return Record(cudaErrorInvalidDeviceFunction);
  return AddNode(node, graph, dependencies, count, cudaGraphNodeTypeKernel, std::move(work));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, std::size_t count,
                                     void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind) {
  return AddNode(node, graph, dependencies, count, cudaGraphNodeTypeMemcpy,
                 [=] { return ptxrun::Copy(to, from, bytes, kind); });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemsetParams* parameters) {
  return AddNode(node, graph, dependencies, count, cudaGraphNodeTypeMemset,
                 [copy = *parameters] { return ptxrun::Memset(copy); });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, std::size_t count,
                                 const cudaHostNodeParams* parameters) {
  return AddNode(node, graph, dependencies, count, cudaGraphNodeTypeHost, [copy = *parameters] {
    copy.fn(copy.userData);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, std::size_t count) {
  return AddNode(node, graph, dependencies, count, cudaGraphNodeTypeEmpty, nullptr);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, std::size_t count,
                                       cudaGraph_t child) {
  // A copy, as CUDA's: the child may be destroyed.
  return AddNode(node, graph, dependencies, count, cudaGraphNodeTypeGraph,
                 [nodes = ptxrun::FromHandle(child)->nodes] { return RunNodes(nodes); });
}

}  // extern "C"
