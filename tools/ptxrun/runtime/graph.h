// Graphs: nodes of work with the nodes that come before them. Made by capture (capture.h) or by
// hand.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <vector>

namespace ptxrun {

using Work = std::function<cudaError_t()>;

struct GraphNode {
  cudaGraphNodeType type;
  Work work;  // empty where a node stands for an order only
  std::vector<int> dependencies;
  int id;  // its place in the graph's list, which lists dependencies first
};

struct Graph {
  std::vector<std::shared_ptr<GraphNode>> nodes;
  std::vector<std::shared_ptr<void>> memory;  // allocated by the graph, freed with it

  // Appends a node; returns its id.
  int Add(cudaGraphNodeType type, Work work, std::vector<int> dependencies);
};

// Runs nodes in the order of their ids; under PTXRUN_ORDER 1 and 2 in another order that their
// dependencies allow, so that a missing edge shows.
cudaError_t RunNodes(const std::vector<std::shared_ptr<GraphNode>>& nodes);

}  // namespace ptxrun
