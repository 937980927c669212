package programs

import (
	"reflect"
	"slices"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"
)

// rejections are the promises of a program that were rejected, and whose rejection the program has not handled yet. The engine can
// call a hook at each rejection, but its Go package offers no way to set the hook. So watchRejections sets it through the C
// interface, with fields that the Go package does not export. Only the goroutine that runs the engine uses a value of this type.
type rejections struct {
	reasons quickjs.Value // an array, which no program can reach
	array   lib.TJSValue  // the same array
	next    uint32        // the first index that was never used
	free    []uint32      // indexes that may be used again
	open    []rejection
}

// rejection is one promise, identified by its address. If the engine frees a promise and gives its address to a new promise, there
// may be two entries with this address; the newer entry is for the new promise.
type rejection struct {
	promise uintptr
	reason  uint32 // index in the array of reasons
}

// engines maps the context of each engine to its rejections. It is global because the hook, a C function, cannot
// carry a Go pointer.
var engines sync.Map // of uintptr to *rejections

// watchRejections begins to record the rejections in an engine. The caller must call end before it closes the engine.
func watchRejections(vm *quickjs.VM) (r *rejections, end func(), err error) {
	r = &rejections{}
	if r.reasons, err = vm.EvalValue("[]", quickjs.EvalGlobal); err != nil {
		return nil, nil, err
	}
	r.array = *(*lib.TJSValue)(field(reflect.ValueOf(&r.reasons).Elem(), "v"))
	inside := reflect.ValueOf(vm).Elem()
	context := *(*uintptr)(field(inside, "cContext"))
	runtime := inside.FieldByName("runtime").Elem()
	tls := *(**libc.TLS)(field(runtime, "tls"))
	engines.Store(context, r)
	hook := onRejection
	lib.XJS_SetHostPromiseRejectionTracker(tls, *(*uintptr)(field(runtime, "cRuntime")), *(*uintptr)(unsafe.Pointer(&hook)), context)
	return r, func() {
		engines.Delete(context)
		r.reasons.Free()
	}, nil
}

// field returns the address of a field of a struct, even if the field is not exported.
func field(of reflect.Value, name string) unsafe.Pointer {
	return unsafe.Pointer(of.FieldByName(name).UnsafeAddr())
}

// onRejection is the hook; QuickJS fixes its parameters. handled is 1 if a handler was added to a promise that was rejected
// before, and 0 if a promise without a handler is rejected.
func onRejection(tls *libc.TLS, context uintptr, promise, _ lib.TJSValue, handled int32, opaque uintptr) {
	found, ok := engines.Load(opaque)
	if !ok {
		return
	}
	r := found.(*rejections)
	address := *(*uintptr)(unsafe.Pointer(&promise)) // the first word of a value is its pointer
	if handled != 0 {
		for i, one := range slices.Backward(r.open) {
			if one.promise == address {
				r.open, r.free = slices.Delete(r.open, i, i+1), append(r.free, one.reason)
				return
			}
		}
		return
	}
	if len(r.open) >= maxRejections {
		return
	}
	// PromiseResult returns a new reference to the reason. The array becomes its owner.
	reason, index := lib.XJS_PromiseResult(tls, context, promise), r.next
	if n := len(r.free); n > 0 {
		index, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.next++
	}
	if lib.XJS_DefinePropertyValueUint32(tls, context, r.array, lib.Tuint32_t(index), reason, plainProperty) > 0 {
		r.open = append(r.open, rejection{address, index})
	}
}

const (
	// maxRejections bounds how many unhandled rejections are recorded. Only the first one is ever shown.
	maxRejections = 1000
	// plainProperty is JS_PROP_C_W_E: configurable, writable, enumerable.
	plainProperty = 7
)

// first returns the oldest rejection that the program has not handled, as the index of its reason in the array reasons.
func (r *rejections) first() (index uint32, found bool) {
	if len(r.open) == 0 {
		return 0, false
	}
	return r.open[0].reason, true
}
