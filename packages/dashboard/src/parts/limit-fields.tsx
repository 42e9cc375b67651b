import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { approvalPolicies } from '@runyard/contract/wire/choices';
import { Three, Two } from './blocks.tsx';
import { SelectField, TextField, textOf } from './form.tsx';

/** The limits of a configuration with their labels. */
const limits = [
  ['max_cost_usd', 'Cost limit, US dollars', '0.01'],
  ['max_duration_minutes', 'Time limit, min', '1'],
  ['max_turns', 'Turn limit', '1'],
] as const;

type Limited = Pick<AmbientAgentConfig, 'approval_policy' | (typeof limits)[number][0]>;

/** The fields for approvals and limits of runs that a schedule or an automation starts. `path`: the path of the configuration. */
export function LimitFields({ path, config = {} }: { path: string; config: Limited | undefined }) {
  return (
    <>
      <Two>
        <SelectField
          label="Approvals"
          path={`${path}.approval_policy`}
          hint="ask: a run waits before each command and change"
          defaultValue={config.approval_policy ?? ''}
          options={[['', 'the default'], ...approvalPolicies.map((policy) => [policy, policy] as const)]}
        />
      </Two>
      <Three>
        {limits.map(([name, label, step]) => (
          <TextField
            key={name}
            label={label}
            path={`${path}.${name}`}
            type="number"
            min="0"
            step={step}
            placeholder="no separate limit"
            defaultValue={config[name]}
          />
        ))}
      </Three>
    </>
  );
}

/** Returns the configuration with the values of these fields. An empty field removes the member. */
export function withLimits<C extends Limited>(
  data: FormData,
  path: string,
  config: C,
): Omit<C, keyof Limited> & Limited {
  const {
    approval_policy: _policy,
    max_cost_usd: _cost,
    max_duration_minutes: _minutes,
    max_turns: _turns,
    ...others
  } = config;
  const policy = approvalPolicies.find((each) => each === data.get(`${path}.approval_policy`));
  const amounts = limits.flatMap(([name]) => {
    const text = textOf(data, `${path}.${name}`);
    return text === undefined ? [] : [[name, Number(text)] as const];
  });
  return { ...others, ...(policy ? { approval_policy: policy } : {}), ...Object.fromEntries(amounts) };
}
