/** Allowed names of indexes and documents, by engine. Each function gives the rest of a sentence, or undefined. */

const LONGEST_INDEX = 255
const LONGEST_ID = 512

/** Anything that can be typed and printed. */
export function postgresIndexProblem(name: string): string | undefined {
  return lengthProblem(name, LONGEST_INDEX) ?? (CONTROL.test(name) ? 'holds control characters' : undefined)
}

/** As Elasticsearch and OpenSearch have it, without the indexes of their own, which begin with a dot. */
export function elasticsearchIndexProblem(name: string): string | undefined {
  if (name !== name.toLowerCase()) return 'must be in lower case'
  if (/^[-_+.]/.test(name)) return 'must not begin with -, _, + or a dot'
  if (/[\\/*?"<>| ,#:]/.test(name) || CONTROL.test(name)) return 'must not hold \\ / * ? " < > | , # : or a space'
  return lengthProblem(name, LONGEST_INDEX)
}

export function meilisearchIndexProblem(name: string): string | undefined {
  return /^[\w-]{1,400}$/.test(name) ? undefined : 'must be letters, digits, - and _ only'
}

export function idProblem(id: string): string | undefined {
  return lengthProblem(id, LONGEST_ID) ?? (/\u0000|\p{Surrogate}/u.test(id) ? 'holds what is no text' : undefined)
}

export function meilisearchIdProblem(id: string): string | undefined {
  return /^[\w-]{1,511}$/.test(id) ? undefined : 'must be letters, digits, - and _ only, for Meilisearch takes no other'
}

function lengthProblem(name: string, most: number): string | undefined {
  if (name === '') return 'is empty'
  return Buffer.byteLength(name) > most ? `is longer than ${most} bytes` : undefined
}

const CONTROL = /[\p{Cc}\p{Surrogate}]/u
