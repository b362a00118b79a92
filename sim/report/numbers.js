"use strict";
// Numbers as a report's reader sees them.

// The same rule as the C++ side's ThreeDigits.
function threeDigits(value) {
  if (value === null || value === undefined) return "n/a";
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(2).split("e");
  const exponent = Number(power);
  if (exponent >= -3 && exponent <= 2) return value.toFixed(2 - exponent);
  if (exponent < 3 || exponent > 14) return `${mantissa}e${exponent}`;
  const shift = exponent % 3;
  return (Number(mantissa) * 10 ** shift).toFixed(2 - shift) + " kMGT"[Math.floor(exponent / 3)];
}

// The same without zeros at the end, for axes: "0.01", "12k".
function shortDigits(value) {
  return threeDigits(value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
}
