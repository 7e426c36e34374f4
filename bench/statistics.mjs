export function median(numbers) {
  return percentile(numbers, 0.5)
}

export function percentile(numbers, share) {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** Of rates that were measured in turns: the median of the ratios of each turn. */
export function medianRatio(rates, others) {
  return median(rates.map((rate, turn) => rate / others[turn]))
}
