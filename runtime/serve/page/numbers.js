// Writes numbers for people: three digits, and the unit that fits.

export function threeDigits(number) {
  const size = Math.abs(number);
  if (size === 0) return '0';
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return number.toExponential(2);
  if (size >= 100) return number.toFixed(0);
  return number.toFixed(size >= 10 ? 1 : 2);
}

export function duration(us) {
  if (us < 1000) return `${threeDigits(us)} µs`;
  return us < 1e6 ? `${threeDigits(us / 1000)} ms` : `${threeDigits(us / 1e6)} s`;
}

export function rate(perSecond) {
  return `${perSecond >= 10_000 ? `${threeDigits(perSecond / 1000)}k` : threeDigits(perSecond)} /s`;
}

export function count(number) {
  if (number < 10_000) return String(number);
  return number < 1e6 ? `${threeDigits(number / 1000)}k` : `${threeDigits(number / 1e6)}M`;
}

export function bytes(number) {
  if (number < 10_000) return `${number} B`;
  return number < 1e6 ? `${threeDigits(number / 1e3)} kB` : `${threeDigits(number / 1e6)} MB`;
}

// "4.2 s", "3:07", "1:02:09"
export function elapsed(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const two = (number) => String(Math.floor(number)).padStart(2, '0');
  const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
