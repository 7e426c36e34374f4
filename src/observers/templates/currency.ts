/** Money, written in English with the sign of its currency. Digits are exact: no amount passes through a double. */
import { closest, ExactNumber } from '../../events/index.ts'
import { type Filter, wrongKind } from './filter.ts'
import { Refusal } from './template-error.ts'
import { kindOfValue } from './text.ts'

/** Whole minor units: 9000 → $90.00. */
export const currency: Filter = {
  name: 'currency',
  parameters: ['code'],
  required: 0,
  check: checkCode,
  apply: (value, [code = 'USD']) => {
    if (value === null || value === undefined) return value
    const { mantissa, exponent, isWhole } = readAmount('currency', value)
    if (!isWhole) {
      throw new Refusal('filter "currency" takes whole minor units, such as cents', 'Use currency_units for 90.5.')
    }
    const known = readCode(code)
    return format(`${mantissa}e${exponent - minorDigits(known)}`, known)
  },
}

/** Major units: 90.5 → $90.50, rounded to what the currency has, halves away from zero. */
export const currencyUnits: Filter = {
  name: 'currency_units',
  parameters: ['code'],
  required: 0,
  check: checkCode,
  apply: (value, [code = 'USD']) => {
    if (value === null || value === undefined) return value
    const { mantissa, exponent } = readAmount('currency_units', value)
    return format(`${mantissa}e${exponent}`, readCode(code))
  },
}

function checkCode([code]: readonly unknown[]): void {
  if (code !== undefined) readCode(code)
}

function readCode(code: unknown): string {
  if (typeof code !== 'string')
    throw new Refusal(`the currency is ${kindOfValue(code)}`, "Give its code, such as 'EUR'.")
  const upper = code.toUpperCase()
  if (KNOWN_CODES.has(upper)) return upper
  // The code may come from the event, so it is not repeated.
  throw new Refusal('the currency is not known', "Give its ISO 4217 code, such as 'EUR'.", closest(upper, KNOWN_CODES))
}

interface Amount {
  readonly mantissa: string
  readonly exponent: number
  readonly isWhole: boolean
}

/** A number in any form, or text that is one, as databases write `numeric`. */
function readAmount(filter: string, value: unknown): Amount {
  const isNumber = typeof value === 'number' || typeof value === 'bigint' || value instanceof ExactNumber
  const text = isNumber || typeof value === 'string' ? String(value).trim() : ''
  const [, mantissa = '', fraction = '', power = '0'] = DECIMAL.exec(text) ?? []
  if (mantissa === '') throw wrongKind(filter, 'a number', value)
  const exponent = Number(power)
  // Long before this it is no money; and 1e999999999 would be written out.
  if (text.length > 100 || Math.abs(exponent) > 100) {
    throw new Refusal(`filter "${filter}" takes amounts of up to 100 digits`, 'Write the number without the filter.')
  }
  return { mantissa, exponent, isWhole: fraction.replace(/0+$/, '').length <= exponent }
}

function format(decimal: string, code: string): string {
  let formatter = formatters.get(code)
  if (formatter === undefined) {
    const digits = minorDigits(code)
    formatter = new Intl.NumberFormat('en-US', {
      style: 'currency',
      currency: code,
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      signDisplay: 'negative',
    })
    formatters.set(code, formatter)
  }
  // Text goes through Intl digit for digit; a number would not. Its no-break space would be lost in a plain SMS.
  return formatter.format(decimal as `${number}`).replace(/[\u00a0\u202f]/g, ' ')
}

/** ISO 4217. Intl follows local habits instead: it writes forints without the two digits that amounts in HUF have. */
function minorDigits(code: string): number {
  if (NO_MINOR_UNIT.has(code)) return 0
  if (THREE_DIGITS.has(code)) return 3
  return code === 'CLF' ? 4 : 2
}

const formatters = new Map<string, Intl.NumberFormat>()
const KNOWN_CODES: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))
const NO_MINOR_UNIT: ReadonlySet<string> = new Set(
  'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF'.split(' '),
)
const THREE_DIGITS: ReadonlySet<string> = new Set('BHD IQD JOD KWD LYD OMR TND'.split(' '))
const DECIMAL = /^(-?\d+(?:\.(\d+))?)(?:[eE]\+?(-?\d+))?$/
