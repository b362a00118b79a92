#include "sim/trace_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace slimgrad::sim {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json Minimal() {
  return Json::parse(R"({
    "format": "slimgrad-trace", "version": 1, "name": "t", "world_size": 2, "steps": 2,
    "tensors": [{"name": "w", "shape": [2, 3]}, {"name": "b", "shape": [2]}],
    "gradients": {"dtype": "F32", "files": "steps/{step:05}.{rank:03}.safetensors",
                  "taken": "after_backward_before_clipping"},
    "optimizer": {"kind": "sgd"}, "learning_rates": [0.1, 0]})");
}

Json Sampled() {
  Json json = Minimal();
  json["sample"] = {{"training_steps", 10},
                    {"step_numbers", {3, 9}},
                    {"model_tensors", 4},
                    {"model_parameters", 100}};
  return json;
}

Json Graph() {
  Json json = Minimal();
  json["loss"] = "cross_entropy";
  json["model"] = {{"kind", "softmax"},
                   {"parameters", 8},
                   {"graph", Json::parse(R"([{"op": "linear", "weight": "w", "bias": "b"}])")}};
  return json;
}

// "" when it is accepted.
std::string ErrorOf(const Json& json) {
  const Result<TraceSchema> schema = ParseTraceSchema(json.dump());
  if (!schema.ok()) {
    EXPECT_THAT(schema.status().message(), testing::StartsWith("trace.json: "));
  }
  return schema.ok() ? "" : schema.status().message();
}

// The error after the field at `pointer` ("/optimizer/kind") becomes `value`.
std::string With(Json json, const std::string& pointer, const Json& value) {
  json[Json::json_pointer(pointer)] = value;
  return ErrorOf(json);
}

std::string Without(Json json, const std::string& pointer, const std::string& key) {
  json[Json::json_pointer(pointer)].erase(key);
  return ErrorOf(json);
}

TEST(TraceSchema, Minimal) {
  const TraceSchema schema = ParseTraceSchema(Minimal().dump()).value();
  EXPECT_EQ(schema.name, "t");
  EXPECT_EQ(schema.world_size, 2);
  EXPECT_EQ(schema.tensors, (std::vector<TensorSpec>{{"w", {2, 3}}, {"b", {2}}}));
  EXPECT_EQ(schema.parameters(), 8);
  EXPECT_EQ(schema.optimizer.momentum, 0);
  EXPECT_FALSE(schema.optimizer.clip_global_norm || schema.model || schema.data || schema.sample);
  EXPECT_THAT(schema.learning_rates, testing::ElementsAre(0.1, 0));
}

TEST(TraceSchema, NullIsAbsentAndUnknownKeysAreIgnored) {
  for (const char* key : {"loss", "model", "data", "initial_weights", "final_weights", "timing",
                          "sample", "results", "provenance", "license"}) {
    EXPECT_EQ(With(Minimal(), std::string("/") + key, nullptr), "") << key;
  }
  for (const char* key :
       {"momentum", "dampening", "nesterov", "weight_decay", "clip_global_norm"}) {
    EXPECT_EQ(With(Minimal(), std::string("/optimizer/") + key, nullptr), "") << key;
  }
  EXPECT_EQ(With(Minimal(), "/comment", "new"), "");
  EXPECT_EQ(With(Minimal(), "/tensors/0/comment", "new"), "");
}

TEST(TraceSchema, RequiredFields) {
  for (const char* key : {"format", "version", "name", "world_size", "steps", "tensors",
                          "gradients", "optimizer", "learning_rates"}) {
    EXPECT_THAT(Without(Minimal(), "", key), testing::EndsWith("found none")) << key;
    EXPECT_THAT(With(Minimal(), std::string("/") + key, nullptr), testing::EndsWith("found null"))
        << key;
  }
  for (const char* key : {"dtype", "files", "taken"}) {
    EXPECT_THAT(Without(Minimal(), "/gradients", key), HasSubstr(std::string("gradients.") + key))
        << key;
  }
  EXPECT_THAT(Without(Minimal(), "/optimizer", "kind"),
              HasSubstr("optimizer.kind: expected \"sgd\" or"));
  EXPECT_THAT(Without(Minimal(), "/tensors/1", "name"),
              HasSubstr("tensors[1].name: expected a string"));
  EXPECT_THAT(Without(Minimal(), "/tensors/1", "shape"),
              HasSubstr("tensors[1].shape: expected an array"));
}

TEST(TraceSchema, FormatAndVersion) {
  EXPECT_EQ(With(Minimal(), "/format", "other"),
            "trace.json: format: expected \"slimgrad-trace\", found \"other\"");
  EXPECT_EQ(With(Minimal(), "/version", 2),
            "trace.json: version: expected a whole number from 1 to 1, found 2");
  EXPECT_EQ(ErrorOf(Json::array()).substr(0, 37), "trace.json: expected an object, found");
}

TEST(TraceSchema, Counts) {
  for (const Json& bad :
       {Json(0), Json(-1), Json(65537), Json(2.0), Json("2"), Json(1e30), Json(true)}) {
    EXPECT_EQ(
        With(Minimal(), "/world_size", bad),
        "trace.json: world_size: expected a whole number from 1 to 65536, found " + bad.dump());
  }
  EXPECT_THAT(With(Minimal(), "/steps", 10'000'001),
              HasSubstr("steps: expected a whole number from 1 to 10000000"));
  EXPECT_THAT(With(Minimal(), "/steps", 3),
              HasSubstr("learning_rates: expected an array of 3 numbers >= 0, one a step"));
}

TEST(TraceSchema, Names) {
  for (const Json& bad : {Json(""), Json("a\nb"), Json("\x7f"), Json("a\u009b31m"),
                          Json(std::string(257, 'a')), Json(1)}) {
    EXPECT_THAT(With(Minimal(), "/name", bad),
                HasSubstr("name: expected a string of 1 to 256 bytes"));
    EXPECT_THAT(With(Minimal(), "/tensors/0/name", bad), HasSubstr("tensors[0].name: expected"));
  }
  EXPECT_EQ(With(Minimal(), "/name", "d\u00e9j\u00e0 vu\u00a0\u0100"), "");
  EXPECT_THAT(With(Minimal(), "/tensors/1/name", "w"),
              HasSubstr("tensors[1].name: expected every name once"));
  EXPECT_THAT(With(Minimal(), "/tensors/1/name", "__metadata__"),
              HasSubstr("expected any other name"));
  for (const char* bad : {"", ".hidden", "../x", "a/b", "a b", "/etc/passwd", "a\\b"}) {
    EXPECT_THAT(With(Minimal(), "/initial_weights", bad),
                HasSubstr("initial_weights: expected a file name"))
        << bad;
    EXPECT_THAT(With(Minimal(), "/timing", bad), HasSubstr("timing: expected a file name")) << bad;
  }
  EXPECT_THAT(With(Minimal(), "/final_weights", std::string(129, 'a')),
              HasSubstr("final_weights: expected"));
}

TEST(TraceSchema, Tensors) {
  EXPECT_THAT(With(Minimal(), "/tensors", Json::array()),
              HasSubstr("tensors: expected an array of 1 to 1000000"));
  EXPECT_THAT(With(Minimal(), "/tensors", Json::object()), HasSubstr("found an object"));
  EXPECT_THAT(With(Minimal(), "/tensors/0", 3),
              HasSubstr("tensors[0]: expected an object, found 3"));
  EXPECT_EQ(With(Minimal(), "/tensors/0/shape", Json::array()), "");
  EXPECT_EQ(With(Minimal(), "/tensors/0/shape", {1, 1, 1, 1, 1, 1, 1, 0}), "");
  EXPECT_THAT(With(Minimal(), "/tensors/0/shape", {1, 1, 1, 1, 1, 1, 1, 1, 1}),
              HasSubstr("at most 8 counts"));
  EXPECT_THAT(With(Minimal(), "/tensors/0/shape", {2, -3}), HasSubstr("found -3 in it"));
  EXPECT_THAT(With(Minimal(), "/tensors/0/shape", {2, 3.5}), HasSubstr("found 3.5 in it"));
  EXPECT_THAT(With(Minimal(), "/tensors/0/shape", {1LL << 40, 1LL << 40}),
              HasSubstr("fewer than 2^60 elements"));
  Json json = Minimal();
  for (int i = 0; i < 20; ++i)
    json["tensors"].push_back({{"name", "x" + std::to_string(i)}, {"shape", {(1LL << 60) - 1}}});
  EXPECT_THAT(ErrorOf(json), HasSubstr("fewer than 2^60 elements in all tensors"));
}

TEST(TraceSchema, Gradients) {
  EXPECT_EQ(With(Minimal(), "/gradients/dtype", "F64"),
            "trace.json: gradients.dtype: expected \"F32\" or \"BF16\" or \"F16\", found \"F64\"");
  EXPECT_THAT(With(Minimal(), "/gradients/files", "{step}.bin"),
              HasSubstr("gradients.files: expected \"steps/"));
  EXPECT_THAT(With(Minimal(), "/gradients/taken", "after_clipping"),
              HasSubstr("gradients.taken: expected"));
}

TEST(TraceSchema, Sgd) {
  EXPECT_EQ(With(Minimal(), "/optimizer/momentum", 1.5),
            "trace.json: optimizer.momentum: expected a number in [0, 1), found 1.5");
  for (const Json& bad : {Json(1), Json(-0.1), Json("0.9"), Json(true)}) {
    EXPECT_THAT(With(Minimal(), "/optimizer/momentum", bad),
                HasSubstr("optimizer.momentum: expected"))
        << bad;
  }
  EXPECT_EQ(With(Minimal(), "/optimizer/dampening", 1), "");
  EXPECT_THAT(With(Minimal(), "/optimizer/dampening", 1.01),
              HasSubstr("optimizer.dampening: expected"));
  EXPECT_THAT(With(Minimal(), "/optimizer/weight_decay", -1),
              HasSubstr("optimizer.weight_decay: expected a number >= 0"));
  EXPECT_THAT(With(Minimal(), "/optimizer/clip_global_norm", 0),
              HasSubstr("optimizer.clip_global_norm: expected a number > 0"));
  EXPECT_THAT(With(Minimal(), "/optimizer/nesterov", 1),
              HasSubstr("optimizer.nesterov: expected true or false"));
  EXPECT_THAT(With(Minimal(), "/optimizer/nesterov", true),
              HasSubstr("found true with momentum 0.0 and dampening 0.0"));
  EXPECT_EQ(With(Minimal(), "/optimizer", {{"kind", "sgd"}, {"nesterov", true}, {"momentum", 0.9}}),
            "");
  EXPECT_THAT(With(Minimal(), "/optimizer/betas", {0.9, 0.99}),
              HasSubstr("optimizer: expected only the keys"));
  EXPECT_THAT(With(Minimal(), "/optimizer/eps", nullptr), HasSubstr("found \"eps\""));
  EXPECT_THAT(With(Minimal(), "/optimizer/kind", "lamb"), HasSubstr("found \"lamb\""));
}

TEST(TraceSchema, Adam) {
  Json json = Minimal();
  json["optimizer"] = {{"kind", "adamw"}, {"betas", {0.9, 0.999}}, {"eps", 1e-8}};
  const OptimizerConfig config = ParseTraceSchema(json.dump()).value().optimizer;
  EXPECT_EQ(config.kind, OptimizerConfig::Kind::kAdamW);
  EXPECT_EQ(config.beta2, 0.999);
  EXPECT_EQ(config.eps, 1e-8);
  EXPECT_THAT(Without(json, "/optimizer", "eps"),
              HasSubstr("optimizer.eps: expected a number > 0, found none"));
  EXPECT_THAT(Without(json, "/optimizer", "betas"),
              HasSubstr("optimizer.betas: expected two numbers"));
  EXPECT_THAT(With(json, "/optimizer/betas", {0.9}), HasSubstr("found an array of 1"));
  EXPECT_THAT(With(json, "/optimizer/betas", {0.9, 1}),
              HasSubstr("optimizer.betas: expected two numbers in [0, 1), found 1"));
  EXPECT_THAT(With(json, "/optimizer/eps", 0),
              HasSubstr("optimizer.eps: expected a number > 0, found 0"));
  EXPECT_THAT(With(json, "/optimizer/momentum", 0.9), HasSubstr("found \"momentum\""));
}

TEST(TraceSchema, LearningRates) {
  EXPECT_THAT(With(Minimal(), "/learning_rates/1", -0.1),
              HasSubstr("learning_rates[1]: expected a number >= 0, found -0.1"));
  EXPECT_THAT(With(Minimal(), "/learning_rates/0", "x"), HasSubstr("learning_rates[0]: expected"));
  EXPECT_THAT(With(Minimal(), "/learning_rates", 0.1),
              HasSubstr("learning_rates: expected an array of 2"));
  std::string text = Minimal().dump();
  text.replace(text.find("0.1"), 3, "1e999");
  EXPECT_THAT(ParseTraceSchema(text).status().message(), HasSubstr("number overflow"));
}

TEST(TraceSchema, Model) {
  EXPECT_EQ(ErrorOf(Graph()), "");
  EXPECT_THAT(Without(Graph(), "", "loss"),
              HasSubstr("loss: expected \"cross_entropy\" with a model graph"));
  EXPECT_THAT(With(Graph(), "/loss", "mse"),
              HasSubstr("loss: expected \"cross_entropy\", found \"mse\""));
  EXPECT_THAT(With(Graph(), "/model/graph", Json::array()),
              HasSubstr("model.graph: expected an array of 1 to 1000 ops"));
  EXPECT_THAT(With(Graph(), "/model/graph/0/op", "conv"), HasSubstr("model.graph[0].op: expected"));
  EXPECT_THAT(With(Graph(), "/model/graph/0/stride", 1),
              HasSubstr("model.graph[0]: expected only the keys op, weight, bias"));
  EXPECT_THAT(With(Graph(), "/model/graph/0/weight", "x"), HasSubstr("trace.json: model.graph"));
  EXPECT_THAT(Without(Graph(), "/model/graph/0", "bias"),
              HasSubstr("trace.json: model.graph"));  // b is unused
  EXPECT_THAT(With(Graph(), "/tensors/1/shape", {3}), HasSubstr("trace.json: model.graph"));
  EXPECT_THAT(With(Graph(), "/model/graph/1", {{"op", "relu"}, {"weight", "w"}}),
              HasSubstr("model.graph[1]: expected only the keys op"));
  EXPECT_EQ(With(Graph(), "/model/graph/1", {{"op", "tanh"}}), "");
  EXPECT_EQ(With(Graph(), "/data", {{"file", "d"}, {"classes", 2}}), "");
  EXPECT_THAT(With(Graph(), "/data", {{"file", "d"}, {"classes", 3}}),
              HasSubstr("trace.json: model.graph"));
  EXPECT_EQ(With(Graph(), "/model/graph", nullptr), "");
  EXPECT_EQ(Without(Graph(), "/model", "kind"), "");
  EXPECT_EQ(Without(Graph(), "/model", "parameters"), "");
}

TEST(TraceSchema, Data) {
  EXPECT_THAT(With(Minimal(), "/data", Json::object()),
              HasSubstr("data.file: expected a file name"));
  for (const Json& bad : {Json(0), Json(1e-300), Json(1e300), Json("1")}) {
    EXPECT_THAT(With(Minimal(), "/data", {{"file", "d"}, {"input_scale", bad}}),
                HasSubstr("data.input_scale: expected"))
        << bad;
  }
  EXPECT_EQ(With(Minimal(), "/data", {{"file", "d"}, {"input_scale", -0.5}}), "");
  EXPECT_THAT(With(Minimal(), "/data", {{"file", "d"}, {"classes", 0}}),
              HasSubstr("data.classes: expected"));
}

TEST(TraceSchema, Sample) {
  EXPECT_EQ(ErrorOf(Sampled()), "");
  for (const char* key : {"training_steps", "step_numbers", "model_tensors", "model_parameters"}) {
    EXPECT_THAT(Without(Sampled(), "/sample", key), HasSubstr(std::string("sample.") + key)) << key;
  }
  EXPECT_THAT(With(Sampled(), "/sample/training_steps", 1),
              HasSubstr("sample.training_steps: expected a whole number from 2"));
  EXPECT_THAT(With(Sampled(), "/sample/model_tensors", 1),
              HasSubstr("sample.model_tensors: expected a whole number from 2"));
  EXPECT_THAT(With(Sampled(), "/sample/model_parameters", 7),
              HasSubstr("sample.model_parameters: expected a whole number from 8"));
  for (const Json& bad :
       {Json({3}), Json({3, 3}), Json({9, 3}), Json({3, 10}), Json({-1, 3}), Json({0.5, 3})}) {
    EXPECT_THAT(With(Sampled(), "/sample/step_numbers", bad),
                HasSubstr("sample.step_numbers: expected"))
        << bad;
  }
  EXPECT_THAT(With(Sampled(), "/data", {{"file", "d"}}),
              HasSubstr("data: expected none with a sample"));
  Json graph = Graph();
  graph["sample"] = Sampled()["sample"];
  EXPECT_THAT(ErrorOf(graph), HasSubstr("model.graph: expected none with a sample"));
}

TEST(TraceSchema, SampledFinalWeights) {
  EXPECT_EQ(With(Sampled(), "/initial_weights", "i"), "");
  EXPECT_THAT(With(Sampled(), "/final_weights", "f"),
              HasSubstr("final_weights: expected none where steps are left out"));
  Json all_steps = Sampled();
  all_steps["sample"]["training_steps"] = 2;
  all_steps["sample"]["step_numbers"] = {0, 1};
  EXPECT_EQ(With(all_steps, "/final_weights", "f"), "");
  all_steps["optimizer"]["clip_global_norm"] = 1;
  EXPECT_THAT(With(all_steps, "/final_weights", "f"),
              HasSubstr("final_weights: expected none where tensors are left out"));
}

TEST(TraceSchema, ResultsAndNotes) {
  EXPECT_EQ(With(Minimal(), "/results",
                 {{"final_eval_accuracy", 1}, {"train_loss", {1, 2}}, {"eval_count", 3}}),
            "");
  EXPECT_THAT(With(Minimal(), "/results", {{"final_eval_accuracy", 1.1}}),
              HasSubstr("results.final_eval_accuracy: expected"));
  EXPECT_THAT(With(Minimal(), "/results", {{"final_eval_loss", "low"}}),
              HasSubstr("results.final_eval_loss: expected a number"));
  EXPECT_THAT(With(Minimal(), "/results", {{"train_loss", {1}}}),
              HasSubstr("results.train_loss: expected an array of 2"));
  EXPECT_EQ(With(Minimal(), "/provenance",
                 {{"seed", 1}, {"fast", true}, {"torch", "2.0"}, {"none", nullptr}}),
            "");
  EXPECT_THAT(With(Minimal(), "/provenance", {{"x", Json::array()}}),
              HasSubstr("provenance.x: expected a string, a number"));
  EXPECT_THAT(With(Minimal(), "/license", {{"data", 1}}),
              HasSubstr("license.data: expected a string, found 1"));
}

TEST(TraceSchema, DuplicateKeysAreRefused) {
  std::string text = Minimal().dump();
  text.insert(1, "\"steps\": 1,");
  EXPECT_THAT(ParseTraceSchema(text).status().message(),
              HasSubstr("trace.json: expected every key once, found \"steps\""));
}

TEST(TraceSchema, TextReadsBack) {
  Json sampled = Sampled();
  sampled["optimizer"] = {
      {"kind", "adam"}, {"betas", {0.9, 0.999}}, {"eps", 1e-8}, {"clip_global_norm", 0.5}};
  sampled["results"] = {{"final_eval_loss", 0.1}, {"eval_count", 5}, {"final_eval_accuracy", 0.5}};
  sampled["provenance"] = {{"torch", "2.0"}};
  sampled["license"] = {{"data", "CC0"}};
  Json graph = Graph();
  graph["data"] = {{"file", "d"}, {"name", "n"}, {"classes", 2}, {"input_scale", 0.0625}};
  graph["timing"] = "t";
  graph["final_weights"] = "f";
  for (const Json& json : {Minimal(), sampled, graph}) {
    const TraceSchema schema = ParseTraceSchema(json.dump()).value();
    const std::string text = TraceSchemaText(schema).value();
    // All that was said is still said, and nothing is lost on the way back.
    const Json written = Json::parse(text);
    const Json said = json.flatten();
    for (const auto& [pointer, value] : said.items()) {
      EXPECT_EQ(written[Json::json_pointer(pointer)], value) << pointer;
    }
    EXPECT_EQ(TraceSchemaText(ParseTraceSchema(text).value()).value(), text);
  }
}

// Every prefix and every changed byte of a real one: an error or a schema, never a crash.
TEST(TraceSchema, Damage) {
  const std::string text = Graph().dump();
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(ParseTraceSchema(text.substr(0, i)).ok()) << i;
    for (const char c : {'\0', '9', '-', '"', '[', '}', '\xff'}) {
      std::string damaged = text;
      damaged[i] = c;
      const Result<TraceSchema> schema = ParseTraceSchema(damaged);
      if (!schema.ok()) {
        EXPECT_THAT(schema.status().message(), HasSubstr("expected"));
      }
    }
  }
}

TEST(StepFileName, IsPadded) {
  EXPECT_EQ(StepFileName(12, 3), "steps/00012.003.safetensors");
  EXPECT_EQ(StepFileName(1234567, 65535), "steps/1234567.65535.safetensors");
}

}  // namespace
}  // namespace slimgrad::sim
