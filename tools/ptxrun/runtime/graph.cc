// In which order a graph's nodes run; the calls that instantiate, change and launch graphs.
#include "tools/ptxrun/runtime/graph.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <utility>

#include "tools/ptxrun/runtime/capture.h"
#include "tools/ptxrun/runtime/handles.h"
#include "tools/ptxrun/runtime/launch.h"
#include "tools/ptxrun/runtime/process.h"

namespace ptxrun {
namespace {

// Nodes whose dependencies have run, and which of them is next.
class ReadyNodes {
 public:
  explicit ReadyNodes(const ptx::Options& options)
      : order_(options.order), random_(static_cast<unsigned>(options.seed)) {}

  bool empty() const { return ids_.empty(); }
  void Add(int id) { ids_.push_back(id); }
  int TakeNext() {
    const auto next = Next();
    const int id = *next;
    ids_.erase(next);
    return id;
  }

 private:
  std::vector<int>::iterator Next() {
    if (order_ == 1) return std::max_element(ids_.begin(), ids_.end());
    if (order_ == 2) return ids_.begin() + static_cast<std::ptrdiff_t>(random_() % ids_.size());
    return std::min_element(ids_.begin(), ids_.end());
  }

  std::vector<int> ids_;
  int order_;
  std::mt19937 random_;
};

// An update may change what nodes do, and not how they hang together.
bool SameShape(const Graph& a, const Graph& b) {
  return std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [](const auto& x, const auto& y) {
                      return x->type == y->type && x->dependencies == y->dependencies;
                    });
}

}  // namespace

int Graph::Add(cudaGraphNodeType type, Work work, std::vector<int> dependencies) {
  const int id = static_cast<int>(nodes.size());
  nodes.push_back(
      std::make_shared<GraphNode>(GraphNode{type, std::move(work), std::move(dependencies), id}));
  return id;
}

cudaError_t RunNodes(const std::vector<std::shared_ptr<GraphNode>>& nodes) {
  ReadyNodes ready(TheProcess().devices[0]->options);
  std::vector<std::size_t> missing(nodes.size());
  std::vector<std::vector<int>> followers(nodes.size());
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    missing[id] = nodes[id]->dependencies.size();
    for (const int before : nodes[id]->dependencies)
      followers[static_cast<std::size_t>(before)].push_back(static_cast<int>(id));
    if (missing[id] == 0) ready.Add(static_cast<int>(id));
  }
  while (!ready.empty()) {
    const auto id = static_cast<std::size_t>(ready.TakeNext());
    if (const Work& work = nodes[id]->work) {
      if (const cudaError_t error = work()) return error;
    }
    for (const int follower : followers[id]) {
      if (--missing[static_cast<std::size_t>(follower)] == 0) ready.Add(follower);
    }
  }
  return cudaSuccess;
}

}  // namespace ptxrun

using ptxrun::FromHandle;
using ptxrun::Graph;
using ptxrun::Record;

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = ptxrun::ToHandle(new Graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete FromHandle(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  const auto& all = FromHandle(graph)->nodes;
  if (nodes == nullptr) {
    *count = all.size();
    return cudaSuccess;
  }
  for (std::size_t i = 0; i < std::min(*count, all.size()); ++i)
    nodes[i] = ptxrun::ToHandle(all[i].get());
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = FromHandle(node)->type;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = ptxrun::ToExecutable(new Graph(*FromHandle(graph)));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  Graph& target = *FromHandle(executable);
  const Graph& source = *FromHandle(graph);
  const bool same = ptxrun::SameShape(target, source);
  if (result != nullptr) {
    std::memset(result, 0, sizeof *result);
    result->result = same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  }
  if (!same) return Record(cudaErrorGraphExecUpdateFailure);
  target.nodes = source.nodes;
  target.memory.insert(target.memory.end(), source.memory.begin(), source.memory.end());
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  ptxrun::Work work = ptxrun::KernelWork(*parameters);
  if (!work) return Record(cudaErrorInvalidDeviceFunction);
  auto& nodes = FromHandle(executable)->nodes;
  const auto id = static_cast<std::size_t>(FromHandle(node)->id);
  if (id >= nodes.size()) return Record(cudaErrorInvalidValue);
  // The graph that it was instantiated from shares the node.
  auto changed = std::make_shared<ptxrun::GraphNode>(*nodes[id]);
  changed->work = std::move(work);
  nodes[id] = std::move(changed);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  // A copy: a captured launch does what the graph was when it was captured.
  return ptxrun::Issue(stream, cudaGraphNodeTypeGraph,
                       [nodes = FromHandle(executable)->nodes] { return RunNodes(nodes); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete FromHandle(executable);
  return cudaSuccess;
}

}  // extern "C"
