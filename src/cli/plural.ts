export function plural(count: number | bigint, word: string): string {
  return `${count} ${word}${BigInt(count) === 1n ? '' : 's'}`
}
