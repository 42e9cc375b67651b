import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useEffect } from 'react';
import { Crumbs, Text } from '../parts/blocks.tsx';
import styles from './frame.module.css';
import { MenuButton } from './menu-button.tsx';

/**
 * The frame of a screen. At the top is a bar with `crumbs`, the title, `status` and `actions`, in this order. Tabs and content are
 * below the bar.
 */
export function Page({
  title,
  tab = title,
  crumbs,
  status,
  actions,
  tabs,
  children,
}: {
  title: string;
  /** Title of the browser's tab. Default: the title. */
  tab?: string;
  crumbs?: ReactNode;
  status?: ReactNode;
  actions?: ReactNode;
  tabs?: ReactNode;
  children: ReactNode;
}) {
  useTitle(tab);
  return (
    <>
      <header>
        <div className={styles.topBar}>
          <MenuButton />
          {crumbs === undefined ? (
            <h1>{visibleText(title)}</h1>
          ) : (
            <Crumbs>
              {crumbs}
              <span aria-hidden="true">/</span>
              <Text as="h1" cut>
                {visibleText(title)}
              </Text>
            </Crumbs>
          )}
          <Text grow>{status}</Text>
          {actions}
        </div>
        {tabs}
      </header>
      <main className={styles.main} id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

/** Sets the title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${visibleText(title)} · Runyard`;
  }, [title]);
}
