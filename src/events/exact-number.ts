import { AftercommitError } from '../errors.ts'

/**
 * A JSON number that no double holds, kept as its text: `0.1000000000000000000001`, `1e400`. `stringifyJson` writes it
 * back unchanged. `JSON.stringify` refuses it, as it refuses a bigint, because it could only round or quote it.
 */
export class ExactNumber {
  readonly text: string

  constructor(text: string) {
    if (!JSON_NUMBER.test(text)) {
      throw new AftercommitError(
        'BAD_JSON',
        'The text given to ExactNumber is not a JSON number. Write it like -12.50.',
      )
    }
    this.text = text
  }

  /** The nearest double: rounds, which is why it has to be asked for. */
  toNumber(): number {
    return Number(this.text)
  }

  toString(): string {
    return this.text
  }

  toJSON(): never {
    throw new AftercommitError(
      'BAD_JSON',
      'JSON.stringify cannot write an ExactNumber without rounding it. Use stringifyJson, or toNumber() to round.',
    )
  }
}

/**
 * Whether a double stands for this number without loss: written out again it has the same value. So 0.1 and 1e21 fit,
 * while 9007199254740993, 1e400 and most numbers of more than 17 digits do not.
 */
export function fitsDouble(text: string): boolean {
  const nearest = Number(text)
  return Number.isFinite(nearest) && canonicalDecimal(text) === canonicalDecimal(String(nearest))
}

/** Equal by value, whatever form the two numbers are in: 1.50, 1.5 and 15e-1 are the same. */
export function sameNumber(one: number | bigint | ExactNumber, other: number | bigint | ExactNumber): boolean {
  if (typeof one === 'number' && typeof other === 'number') return one === other
  if (!isFiniteNumber(one) || !isFiniteNumber(other)) return false
  return canonicalDecimal(String(one)) === canonicalDecimal(String(other))
}

/** Whether Postgres can keep it: `numeric` ends at 131,072 digits before the point and 16,383 after it. */
export function fitsNumeric(text: string): boolean {
  const { digits, exponent, scale } = parseDecimal(text)
  return scale <= 16_383n && (digits === '' || BigInt(digits.length) + exponent <= 131_072n)
}

function isFiniteNumber(value: number | bigint | ExactNumber): boolean {
  return typeof value !== 'number' || Number.isFinite(value)
}

function canonicalDecimal(text: string): string {
  const { sign, digits, exponent } = parseDecimal(text)
  return digits === '' ? '0' : `${sign}${digits}e${exponent}`
}

export interface Decimal {
  /** Empty for zero. */
  readonly sign: '' | '-'
  /** Without zeros at either end; empty for zero. */
  readonly digits: string
  readonly exponent: bigint
  /** Digits after the point as written; below zero for powers of ten. */
  readonly scale: bigint
}

/** A decimal number as written. Zeros are cut by hand, since a pattern like /0+$/ is quadratic. */
export function parseDecimal(text: string): Decimal {
  const [, sign = '', whole = '', fraction = '', power = '0'] = DECIMAL.exec(text) ?? []
  const all = whole + fraction
  let start = 0
  let end = all.length
  while (start < end && all.charCodeAt(start) === ZERO) start++
  while (end > start && all.charCodeAt(end - 1) === ZERO) end--
  const scale = BigInt(fraction.length) - BigInt(power)
  const digits = all.slice(start, end)
  return { sign: sign === '-' && digits !== '' ? '-' : '', digits, exponent: BigInt(all.length - end) - scale, scale }
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]\+?(-?\d+))?$/
const ZERO = 48
