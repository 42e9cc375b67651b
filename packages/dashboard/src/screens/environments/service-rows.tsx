import type { EnvironmentService } from '@runyard/contract/environments/services';
import { useId } from 'react';
import { FaultText, useFault } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import styles from '../../parts/rows.module.css';

/** Returns the services without those whose name and command are still empty. */
export const filledServices = (services: readonly EnvironmentService[]): EnvironmentService[] =>
  services.filter(({ name, command }) => name.trim() !== '' || command.trim() !== '');

/** Lets a person edit the programs that run beside the agent. Does not change members of a service that it does not show. */
export function ServiceRows({
  path,
  services,
  set,
}: {
  path: string;
  services: readonly EnvironmentService[];
  set: (services: readonly EnvironmentService[]) => void;
}) {
  return (
    <fieldset className={styles.rows}>
      <legend>Services</legend>
      {services.map((service, index) => (
        <ServiceRow
          key={index}
          number={index + 1}
          path={`${path}.${index}`}
          service={service}
          change={(next) => set(services.with(index, next))}
          remove={() => set(services.toSpliced(index, 1))}
        />
      ))}
      <button type="button" className="btn sm start" onClick={() => set([...services, { name: '', command: '' }])}>
        <Icon name="plus" small />
        Add service
      </button>
      <span className="hint">
        Programs beside the agent, such as a database. The agent begins when each port accepts connections and each
        check exits with 0
      </span>
    </fieldset>
  );
}

function ServiceRow({
  number,
  path,
  service,
  change,
  remove,
}: {
  number: number;
  path: string;
  service: EnvironmentService;
  change: (service: EnvironmentService) => void;
  remove: () => void;
}) {
  const id = useId();
  const fault = useFault(`${path}.*`);
  const { port, ready, ...others } = service;
  const set = (next: { readonly port?: number | undefined; readonly ready?: string | undefined }) =>
    change({
      ...others,
      ...(next.port === undefined ? {} : { port: next.port }),
      ...(next.ready ? { ready: next.ready } : {}),
    });
  const field = (what: string) => ({
    className: 'in mono',
    'aria-label': `${what} of service ${number}`,
    autoComplete: 'off',
    spellCheck: false,
  });
  return (
    <>
      <div className={styles.service}>
        <input
          {...field('name')}
          id={id}
          aria-invalid={fault === undefined ? undefined : true}
          aria-describedby={fault === undefined ? undefined : `${id}-fault`}
          placeholder="redis"
          value={service.name}
          onChange={({ target }) => change({ ...service, name: target.value })}
        />
        <input
          {...field('command')}
          placeholder="exec redis-server"
          value={service.command}
          onChange={({ target }) => change({ ...service, command: target.value })}
        />
        <input
          {...field('port')}
          type="number"
          placeholder="6379"
          value={port ?? ''}
          onChange={({ target }) => set({ port: target.value === '' ? undefined : Number(target.value), ready })}
        />
        <input
          {...field('check')}
          placeholder="check, such as redis-cli ping"
          value={ready ?? ''}
          onChange={({ target }) => set({ port, ready: target.value })}
        />
        <button type="button" className="btn ghost icon" aria-label={`Remove service ${number}`} onClick={remove}>
          <Icon name="x" small />
        </button>
      </div>
      {fault && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
    </>
  );
}
