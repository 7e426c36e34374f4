/**
 * The Prometheus text format, version 0.0.4. Pure: samples in, text out.
 */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export type MetricType = 'counter' | 'gauge' | 'histogram'

export interface Sample {
  /** `_bucket`, `_sum` or `_count`; empty for the metric itself. */
  suffix: string
  labels: readonly (readonly [name: string, value: string])[]
  value: number
}

export function toExposition(name: string, type: MetricType, help: string, samples: Iterable<Sample>): string {
  const lines = [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`]
  for (const { suffix, labels, value } of samples) {
    const pairs = labels.map(([label, text]) => `${label}="${escapeLabel(text)}"`)
    lines.push(`${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${toNumber(value)}`)
  }
  return `${lines.join('\n')}\n`
}

/** Also the text of the `le` label. */
export function toNumber(value: number): string {
  if (value === Infinity) return '+Inf'
  if (value === -Infinity) return '-Inf'
  return String(value)
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"')
}
