// The operations of a codec: encode, encode with error feedback, decode, and there and back.
//
// A codec under test is a class with these members, the last three where it can:
//
//   explicit C(std::size_t n, parameters...)
//   using Code = CodeOf<word types...>;
//   Code NewCode() const                     the memory that one tensor's code takes
//   void Encode(backend, x, code), void EncodeRef(x, code)
//   void Decode(backend, code, y), void DecodeRef(code, y)         y is overwritten
//   void EncodeFeedback(backend, x, residual, code), void EncodeFeedbackRef(x, residual, code)
//
// One that decodes to something else than x says so with a member kNotDecoded.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "benchmarks/operation.h"

namespace slimgrad::benchmarks {

// Arrays of words of these types.
template <class... Words>
class CodeOf {
 public:
  template <class... Counts>
  explicit CodeOf(Counts... counts) : parts_(Buffer<Words>(counts)...) {
    Touch();
  }

  template <std::size_t kPart>
  auto part() const {
    return std::get<kPart>(parts_).span();
  }
  std::size_t bytes() const {
    return std::apply([](const auto&... part) { return (part.span().size_bytes() + ...); }, parts_);
  }
  std::uint64_t Differing(const CodeOf& other) const {
    return [&]<std::size_t... kPart>(std::index_sequence<kPart...>) {
      return (benchmarks::Differing(part<kPart>(), other.part<kPart>()) + ...);
    }
    (std::index_sequence_for<Words...>());
  }

 private:
  void Touch() {
    std::apply([](const auto&... part) { (TouchPages(part.span()), ...); }, parts_);
  }

  std::tuple<Buffer<Words>...> parts_;
};

template <class C>
std::vector<typename C::Code> CodesOf(const C& codec) {
  std::vector<typename C::Code> codes;
  for (std::size_t turn = 0; turn < kTurns; ++turn) codes.push_back(codec.NewCode());
  return codes;
}

template <class C>
class EncodeCase final : public Case {
 public:
  template <class... Parameters>
  EncodeCase(Inputs inputs, std::size_t n, Parameters... parameters)
      : codec_(n, parameters...), x_(std::move(inputs)), codes_(CodesOf(codec_)) {}

  void Run(const Backend& backend, std::size_t turn) override {
    codec_.Encode(backend, (*x_)[turn], codes_[turn % kTurns]);
  }
  Quality Check(const Backend& backend) override {
    Run(backend, 0);
    const In x = (*x_)[0];
    auto expected = codec_.NewCode();
    codec_.EncodeRef(x, expected);
    Quality quality = {codes_[0].Differing(expected), codes_[0].bytes()};
    if constexpr (!requires { C::kNotDecoded; }) {
      const Buffer<float> decoded(x.size());
      codec_.Decode(backend, codes_[0], decoded.span());
      quality.rel_error = RelativeError(decoded.span(), x);
    }
    return quality;
  }

 private:
  C codec_;
  Inputs x_;
  std::vector<typename C::Code> codes_;
};

template <class C>
class FeedbackCase final : public Case {
 public:
  template <class... Parameters>
  FeedbackCase(Inputs inputs, std::size_t n, Parameters... parameters)
      : codec_(n, parameters...), x_(std::move(inputs)), residual_(n), codes_(CodesOf(codec_)) {}

  void Run(const Backend& backend, std::size_t turn) override {
    codec_.EncodeFeedback(backend, (*x_)[turn], residual_[turn], codes_[turn % kTurns]);
  }
  // Two steps, so that there is a residual. The error is that of the first.
  Quality Check(const Backend& backend) override {
    const In x = (*x_)[0];
    auto expected = codec_.NewCode();
    const Buffer<float> expected_residual(x.size());
    Quality quality;
    for (int step = 0; step < 2; ++step) {
      Run(backend, 0);
      codec_.EncodeFeedbackRef(x, expected_residual.span(), expected);
      quality.wrong += codes_[0].Differing(expected);
      if (step > 0) continue;
      const Buffer<float> decoded(x.size());
      codec_.Decode(backend, codes_[0], decoded.span());
      quality.rel_error = RelativeError(decoded.span(), x);
    }
    quality.wrong += Differing(residual_[0], expected_residual.span());
    quality.output_bytes = codes_[0].bytes();
    return quality;
  }

 private:
  C codec_;
  Inputs x_;
  Rotation<float> residual_;
  std::vector<typename C::Code> codes_;
};

template <class C>
class DecodeCase final : public Case {
 public:
  template <class... Parameters>
  DecodeCase(const Inputs& inputs, std::size_t n, Parameters... parameters)
      : codec_(n, parameters...), codes_(CodesOf(codec_)), y_(n) {
    for (std::size_t turn = 0; turn < kTurns; ++turn)
      codec_.Encode({}, (*inputs)[turn], codes_[turn]);
  }

  void Run(const Backend& backend, std::size_t turn) override {
    codec_.Decode(backend, codes_[turn % kTurns], y_[turn]);
  }
  Quality Check(const Backend& backend) override {
    Run(backend, 0);
    const Buffer<float> expected(y_[0].size());
    codec_.DecodeRef(codes_[0], expected.span());
    return {Differing(y_[0], expected.span())};
  }

 private:
  C codec_;
  std::vector<typename C::Code> codes_;
  Rotation<float> y_;
};

// Encode and decode: what a small tensor waits for.
template <class C>
class RoundTripCase final : public Case {
 public:
  template <class... Parameters>
  RoundTripCase(Inputs inputs, std::size_t n, Parameters... parameters)
      : codec_(n, parameters...), x_(std::move(inputs)), code_(codec_.NewCode()), y_(n) {}

  void Run(const Backend& backend, std::size_t turn) override {
    codec_.Encode(backend, (*x_)[turn], code_);
    codec_.Decode(backend, code_, y_[turn]);
  }
  Quality Check(const Backend& backend) override {
    Run(backend, 0);
    auto code = codec_.NewCode();
    codec_.EncodeRef((*x_)[0], code);
    const Buffer<float> expected(y_[0].size());
    codec_.DecodeRef(code, expected.span());
    return {Differing(y_[0], expected.span()), code.bytes(), RelativeError(y_[0], (*x_)[0])};
  }

 private:
  C codec_;
  Inputs x_;
  typename C::Code code_;
  Rotation<float> y_;
};

}  // namespace slimgrad::benchmarks
