import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useEffect } from 'react';
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
        <div className="topbar">
          <MenuButton />
          {crumbs === undefined ? (
            <h1>{visibleText(title)}</h1>
          ) : (
            <div className="crumbs">
              {crumbs}
              <span aria-hidden="true">/</span>
              <h1 className="cur cut">{visibleText(title)}</h1>
            </div>
          )}
          <span className="grow">{status}</span>
          {actions}
        </div>
        {tabs}
      </header>
      <main className="main" id="main" tabIndex={-1}>
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
