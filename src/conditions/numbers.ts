import { type Decimal, ExactNumber, parseDecimal } from '../events/index.ts'
import { spend } from './budget.ts'

/**
 * Exact numbers. A JSON number arrives as a double where that holds it, else as a bigint or an ExactNumber; here the
 * three are one kind, compared and calculated with as the decimals that somebody wrote: 0.1 + 0.2 is 0.3.
 */
export type Numeric = number | bigint | ExactNumber

export function isNumeric(value: unknown): value is Numeric {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof ExactNumber
}

/** Below zero, zero or above. NaN and the infinities, which no JSON holds, compare as doubles do. */
export function compareNumbers(one: Numeric, other: Numeric): number {
  if (typeof one === 'number' && typeof other === 'number') return one === other ? 0 : one - other
  if (isSmall(one) && isSmall(other)) return one < other ? -1 : Number(one > other)
  if (!isFiniteNumber(one) || !isFiniteNumber(other)) return Number(one) - Number(other)
  return compareDecimals(toDecimal(one), toDecimal(other))
}

/** The simplest form that holds the number exactly. */
export function parseNumber(text: string): Numeric {
  return fromDecimal(parseDecimal(text))
}

/** Undefined when the result would have more digits than is sensible. */
export function add(one: Numeric, other: Numeric): Numeric | undefined {
  if (typeof one === 'number' && typeof other === 'number' && Number.isSafeInteger(one + other)) {
    if (Number.isInteger(one) && Number.isInteger(other)) return one + other
  }
  return onCommonScale(one, other, (a, b) => a + b)
}

export function subtract(one: Numeric, other: Numeric): Numeric | undefined {
  return add(one, negate(other))
}

export function multiply(one: Numeric, other: Numeric): Numeric | undefined {
  if (Number.isInteger(one) && Number.isInteger(other)) {
    const product = (one as number) * (other as number)
    if (Number.isSafeInteger(product)) return product
  }
  const [a, b] = [toDecimal(one), toDecimal(other)]
  if (a.digits.length + b.digits.length > MOST_DIGITS) return undefined
  return fromScaled(unscaled(a) * unscaled(b), a.exponent + b.exponent)
}

/** Exact where the quotient is a whole number; otherwise the nearest double. The divisor is not zero. */
export function divide(one: Numeric, other: Numeric): Numeric | undefined {
  const rest = remainder(one, other)
  if (rest === undefined) return undefined
  if (rest !== 0) {
    const quotient = Number(textOf(one)) / Number(textOf(other))
    return Number.isFinite(quotient) ? quotient : undefined
  }
  return onCommonScale(one, other, (a, b) => a / b, 'none')
}

/** Exact, with the sign of the dividend. The divisor is not zero. */
export function remainder(one: Numeric, other: Numeric): Numeric | undefined {
  return onCommonScale(one, other, (a, b) => a % b)
}

export function negate(value: Numeric): Numeric {
  if (typeof value !== 'object') return -value
  const { text } = value
  return new ExactNumber(text.startsWith('-') ? text.slice(1) : `-${text}`)
}

export function isZero(value: Numeric): boolean {
  return typeof value === 'object' ? toDecimal(value).digits === '' : value === 0 || value === 0n
}

/** The digits of a number, at a cost: a payload has room for a hundred thousand, and each item may ask for them. */
export function textOf(value: Numeric): string {
  const text = value.toString()
  // The engine writes out a bigint in time that grows with the square of its length.
  if (text.length > 32) spend(typeof value === 'bigint' ? (text.length ** 2) >> 8 : text.length >> 3)
  return text
}

/** Without what stands after the point. Undefined when that has more digits than is sensible. */
export function truncate(value: Numeric): Numeric | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  const { sign, digits, exponent } = toDecimal(value)
  if (exponent >= 0n) return onCommonScale(value, 0, (a) => a)
  const whole = BigInt(digits.length) + exponent
  return whole <= 0n ? 0 : parseNumber(`${sign}${digits.slice(0, Number(whole))}`)
}

function toDecimal(value: Numeric): Decimal {
  return parseDecimal(textOf(value))
}

/** By sign, then by the place of the first digit, then digit by digit: no power of ten is ever written out. */
function compareDecimals(one: Decimal, other: Decimal): number {
  spend((one.digits.length + other.digits.length) >> 6)
  const [a, b] = [signOf(one), signOf(other)]
  if (a !== b || a === 0) return a - b
  const places = BigInt(one.digits.length) + one.exponent - BigInt(other.digits.length) - other.exponent
  if (places !== 0n) return places > 0n ? a : -a
  if (one.digits === other.digits) return 0
  return one.digits > other.digits ? a : -a
}

function signOf({ sign, digits }: Decimal): -1 | 0 | 1 {
  if (digits === '') return 0
  return sign === '-' ? -1 : 1
}

function onCommonScale(
  one: Numeric,
  other: Numeric,
  calculate: (a: bigint, b: bigint) => bigint,
  scale: 'kept' | 'none' = 'kept',
): Numeric | undefined {
  const [a, b] = [toDecimal(one), toDecimal(other)]
  const exponent = a.digits === '' || (b.digits !== '' && b.exponent < a.exponent) ? b.exponent : a.exponent
  const [longA, longB] = [lengthAt(a, exponent), lengthAt(b, exponent)]
  if (longA > MOST_DIGITS || longB > MOST_DIGITS) return undefined
  const result = calculate(scaled(a, exponent), scaled(b, exponent))
  return fromScaled(result, scale === 'kept' ? exponent : 0n)
}

function lengthAt({ digits, exponent }: Decimal, scale: bigint): bigint {
  return digits === '' ? 0n : BigInt(digits.length) + exponent - scale
}

function scaled(decimal: Decimal, scale: bigint): bigint {
  return decimal.digits === '' ? 0n : unscaled(decimal) * 10n ** (decimal.exponent - scale)
}

function unscaled({ sign, digits }: Decimal): bigint {
  return digits === '' ? 0n : BigInt(`${sign}${digits}`)
}

function fromScaled(value: bigint, exponent: bigint): Numeric {
  spend(1)
  return fromDecimal(parseDecimal(`${textOf(value)}e${exponent}`))
}

function fromDecimal(decimal: Decimal): Numeric {
  const { sign, digits, exponent } = decimal
  if (digits === '') return 0
  const nearest = Number(`${sign}${digits}e${exponent}`)
  if (Number.isFinite(nearest) && compareDecimals(toDecimal(nearest), decimal) === 0) return nearest
  const places = BigInt(digits.length) + exponent
  if (exponent >= 0n && places <= MOST_DIGITS) return BigInt(`${sign}${digits}${'0'.repeat(Number(exponent))}`)
  return new ExactNumber(`${sign}${writeOut(digits, exponent, places)}`)
}

/** As people write it where that is short, so that 12.50 does not turn into 125e-1. */
function writeOut(digits: string, exponent: bigint, places: bigint): string {
  if (exponent >= 0n || places < -40n) return `${digits}e${exponent}`
  if (places <= 0n) return `0.${'0'.repeat(Number(-places))}${digits}`
  return `${digits.slice(0, Number(places))}.${digits.slice(Number(places))}`
}

/** Where a bigint and a double can be compared as they are. Beyond, a double is not the decimal it is written as. */
function isSmall(value: Numeric): value is number | bigint {
  return typeof value === 'bigint' || (typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER)
}

function isFiniteNumber(value: Numeric): boolean {
  return typeof value !== 'number' || Number.isFinite(value)
}

/** Postgres goes further, but nobody calculates there, and each step would cost milliseconds. */
const MOST_DIGITS = 1_000
