/** Text made of whole characters. Half a surrogate pair is no character: UTF-8, and so Postgres, cannot hold it. */
export function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text)
}

/** Puts U+FFFD in the place of every half. */
export function toWellFormed(text: string): string {
  return text.replaceAll(LONE_SURROGATES, '\ufffd')
}

// With the u flag a pair counts as one character, so what is left to match is a half.
const LONE_SURROGATE = /\p{Surrogate}/u
const LONE_SURROGATES = /\p{Surrogate}/gu
